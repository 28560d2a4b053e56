// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_mutex.
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "clock.hpp"

class PriceTable {
	std::mutex mutex;
	std::map<int, double> prices;

    public:
	__attribute__((noinline)) void rebuild()
	{
		std::lock_guard<std::mutex> guard(mutex);
		uint64_t until = now() + 120000000;

		prices.clear();
		for (int i = 0; now() < until; i++)
			prices[i % 20000] = i / 7.0;
	}
	__attribute__((noinline)) double look_up(int item, Clock &clock)
	{
		uint64_t start = now();
		std::lock_guard<std::mutex> guard(mutex);

		clock.add(start, now());
		auto found = prices.find(item);
		return found == prices.end() ? 0 : found->second;
	}
};

static PriceTable table;

static void answer()
{
	Clock clock("waits");

	for (int item = 0;; item++) {
		table.look_up(item % 20000, clock);
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}
}

static void refresh()
{
	for (;;) {
		table.rebuild();
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
	}
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	threads.emplace_back(refresh);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(answer);
	for (auto &thread : threads)
		thread.join();
}
