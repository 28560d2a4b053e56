// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A thread that answers quotes, each by a task of another thread that computes. */
#include <chrono>
#include <future>
#include <thread>

__attribute__((noinline)) static unsigned find_cheapest(unsigned seed)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(80);
	volatile unsigned cheapest = seed;

	while (std::chrono::steady_clock::now() < end)
		for (unsigned i = 0; i < 10000; i++)
			cheapest = cheapest * 1664525 + 1013904223;
	return cheapest;
}

__attribute__((noinline)) static unsigned quote_route(unsigned seed)
{
	auto task = std::async(std::launch::async, find_cheapest, seed);

	return task.get() + 1;
}

static void answer(unsigned seed)
{
	for (;;)
		seed = quote_route(seed);
}

int main()
{
	std::thread thread(answer, 1);

	thread.join();
}
