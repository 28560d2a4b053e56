// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_rwlock: a writer holds the lock of a routing table for long, and the readers wait.
#include <chrono>
#include <pthread.h>
#include <thread>
#include <vector>

#include "clock.hpp"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static std::vector<double> table(4096);
static volatile double result;

__attribute__((noinline)) static double find_route(int number, Clock &clock)
{
	uint64_t start = now();

	pthread_rwlock_rdlock(&table_lock);
	clock.add(start, now());
	double cost = table[number % table.size()];
	pthread_rwlock_unlock(&table_lock);
	return cost;
}

__attribute__((noinline)) static void recompute_routes()
{
	pthread_rwlock_wrlock(&table_lock);
	uint64_t until = now() + 90000000;
	while (now() < until)
		for (size_t i = 1; i < table.size(); i++)
			table[i] = table[i - 1] * 0.5 + i;
	pthread_rwlock_unlock(&table_lock);
}

static void answer()
{
	Clock clock("waits");

	for (int number = 0;; number++) {
		result = find_route(number, clock);
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
}

static void update()
{
	for (;;) {
		recompute_routes();
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	}
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	threads.emplace_back(update);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(answer);
	for (auto &thread : threads)
		thread.join();
}
