// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_condition: consumers wait for jobs, of which one thread assembles few.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "clock.hpp"

class Jobs {
	std::mutex mutex;
	std::condition_variable arrived;
	std::deque<double> jobs;

    public:
	__attribute__((noinline)) double take(Clock &clock)
	{
		uint64_t start = now();
		std::unique_lock<std::mutex> guard(mutex);

		arrived.wait(guard, [this] { return !jobs.empty(); });
		clock.add(start, now());
		double job = jobs.front();
		jobs.pop_front();
		return job;
	}
	void put(double job)
	{
		std::lock_guard<std::mutex> guard(mutex);

		jobs.push_back(job);
		arrived.notify_one();
	}
};

static Jobs jobs;
static volatile double result;

__attribute__((noinline)) static double assemble_job(int number)
{
	uint64_t until = now() + 60000000;
	double sum = number;

	while (now() < until)
		for (int i = 1; i < 1000; i++)
			sum += number / (sum + i);
	return sum;
}

static void produce()
{
	for (int number = 0;; number++)
		jobs.put(assemble_job(number));
}

static void consume()
{
	Clock clock("waits");

	for (;;)
		result = jobs.take(clock) * 2;
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	threads.emplace_back(produce);
	for (int i = 0; i < 4; i++)
		threads.emplace_back(consume);
	for (auto &thread : threads)
		thread.join();
}
