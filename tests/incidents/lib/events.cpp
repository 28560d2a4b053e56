// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_hot_lock: each thread records many events under one mutex.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "clock.hpp"

static std::mutex events_lock;
static std::string lines;
static volatile long spent;

__attribute__((noinline)) static void format_line(long number)
{
	char line[64];

	for (int part = 0; part < 20; part++)
		snprintf(line, sizeof(line), "event %ld part %d", number, part);
	lines = line;
}

__attribute__((noinline)) static void record_event(long number, Clock &clock)
{
	uint64_t start = now();
	std::lock_guard<std::mutex> guard(events_lock);

	clock.add(start, now());
	format_line(number);
}

static void work()
{
	Clock clock("waits");

	for (long number = 0;; number++) {
		record_event(number, clock);
		for (int i = 0; i < 200; i++)
			spent = spent + i;
	}
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	for (int i = 0; i < 6; i++)
		threads.emplace_back(work);
	for (auto &thread : threads)
		thread.join();
}
