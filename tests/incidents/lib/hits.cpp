// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of c_spinlock: a spin lock is held while a report is written, and the other threads spin for it.
#include <chrono>
#include <pthread.h>
#include <thread>
#include <vector>

#include "clock.hpp"

static pthread_spinlock_t hits_lock;
static long hits[64];

__attribute__((noinline)) static void count_hit(int page, Clock &clock)
{
	uint64_t start = now();

	pthread_spin_lock(&hits_lock);
	clock.add(start, now());
	hits[page % 64]++;
	pthread_spin_unlock(&hits_lock);
}

__attribute__((noinline)) static void write_report()
{
	pthread_spin_lock(&hits_lock);
	std::this_thread::sleep_for(std::chrono::milliseconds(40)); // as a slow file server would answer
	for (long &hit : hits)
		hit = 0;
	pthread_spin_unlock(&hits_lock);
}

static void serve()
{
	Clock clock("spins");

	for (int page = 0;; page++) {
		count_hit(page, clock);
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
}

static void report()
{
	for (;;) {
		write_report();
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	}
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	pthread_spin_init(&hits_lock, PTHREAD_PROCESS_PRIVATE);
	threads.emplace_back(report);
	for (int i = 0; i < 2; i++)
		threads.emplace_back(serve);
	for (auto &thread : threads)
		thread.join();
}
