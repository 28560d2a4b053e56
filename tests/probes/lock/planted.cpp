// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * C++ threads that wait for locks and log their holds, in the format of blame_lib.py. Waits for a line first.
 * planted SECONDS
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

struct hold {
	const char *lock, *waited_at, *released_at;
	int tid;
	unsigned long long asked, got, released;
};

static hold holds[100000];
static std::atomic<int> n_holds;
static std::atomic<bool> stop;

static unsigned long long now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void note(const char *lock, const char *code, unsigned long long asked, unsigned long long got,
		 unsigned long long released)
{
	holds[n_holds++] = { lock, code, code, (int)syscall(SYS_gettid), asked, got, released };
}

static void nap(int us)
{
	std::this_thread::sleep_for(std::chrono::microseconds(us));
}

static void compute(int us)
{
	unsigned long long until = now() + us * 1000ULL;

	while (now() < until)
		;
}

static std::mutex standard;
static std::timed_mutex timed;
static pthread_mutex_t posix = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void standard_reload()
{
	while (!stop) {
		unsigned long long asked = now(), got, released;
		{
			std::lock_guard<std::mutex> guard(standard);
			got = now();
			nap(15000);
			released = now();
		}
		note("standard", "standard_reload", asked, got, released);
		nap(2000);
	}
}

__attribute__((noinline)) void standard_compute()
{
	while (!stop) {
		unsigned long long asked = now();
		standard.lock();
		unsigned long long got = now();
		compute(6000);
		unsigned long long released = now();
		standard.unlock();
		note("standard", "standard_compute", asked, got, released);
		nap(3000);
	}
}

__attribute__((noinline)) void standard_handle()
{
	while (!stop) {
		unsigned long long asked = now();
		standard.lock();
		unsigned long long got = now(), released = now();
		standard.unlock();
		note("standard", "standard_handle", asked, got, released);
		nap(1000);
	}
}

__attribute__((noinline)) void posix_reload()
{
	while (!stop) {
		unsigned long long asked = now();
		pthread_mutex_lock(&posix);
		unsigned long long got = now();
		nap(10000);
		unsigned long long released = now();
		pthread_mutex_unlock(&posix);
		note("posix", "posix_reload", asked, got, released);
		nap(1000);
	}
}

__attribute__((noinline)) void posix_handle()
{
	while (!stop) {
		unsigned long long asked = now();
		pthread_mutex_lock(&posix);
		unsigned long long got = now(), released = now();
		pthread_mutex_unlock(&posix);
		note("posix", "posix_handle", asked, got, released);
		nap(1000);
	}
}

__attribute__((noinline)) void timed_reload()
{
	while (!stop) {
		unsigned long long asked = now();
		timed.lock();
		unsigned long long got = now();
		nap(40000);
		unsigned long long released = now();
		timed.unlock();
		note("timed", "timed_reload", asked, got, released);
		nap(2000);
	}
}

__attribute__((noinline)) void timed_handle()
{
	while (!stop) {
		unsigned long long asked = now();
		if (timed.try_lock_for(std::chrono::milliseconds(7))) {
			unsigned long long got = now(), released = now();
			timed.unlock();
			note("timed", "timed_handle", asked, got, released);
		} else {
			note("timed", "timed_handle", asked, now(), 0);
		}
		/* regular pauses could keep in step with the holder, so that no release would ever have a waiter */
		nap(200 + rand() % 1000);
	}
}

int main(int argc, char **argv)
{
	void (*const functions[])() = { standard_reload, standard_compute, standard_handle, standard_handle,
					posix_reload,	 posix_handle,	   posix_handle,    timed_reload,
					timed_handle };
	std::vector<std::thread> threads;
	char line[8];

	if (argc < 2 || !fgets(line, sizeof(line), stdin))
		return 1;
	for (auto f : functions)
		threads.emplace_back(f);
	nap(atof(argv[1]) * 1e6);
	stop = true;
	for (auto &t : threads)
		t.join();
	for (int i = 0; i < n_holds; i++) {
		const hold &h = holds[i];

		printf("hold %s %d %s %s %llu %llu %llu\n", h.lock, h.tid, h.waited_at, h.released_at, h.asked, h.got,
		       h.released);
	}
	return 0;
}
