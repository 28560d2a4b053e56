// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The solver of c_barrier: four threads meet at a barrier after each step, and one of them has a denser part than the others.
#include <pthread.h>
#include <thread>
#include <vector>

#include "clock.hpp"

static pthread_barrier_t step_end;
static std::vector<double> cells(1 << 16);

__attribute__((noinline)) static void relax_sparse(int part)
{
	for (size_t i = part; i < cells.size(); i += 64)
		cells[i] = cells[i] * 0.5 + part;
}

__attribute__((noinline)) static void relax_dense(int part)
{
	for (int round = 0; round < 400; round++)
		for (size_t i = 1; i < cells.size(); i++)
			cells[i] = cells[i - 1] * 0.25 + part;
}

static void solve(int part)
{
	Clock clock("waits");

	for (;;) {
		if (part == 3)
			relax_dense(part);
		else
			relax_sparse(part);
		uint64_t start = now();
		pthread_barrier_wait(&step_end);
		if (part != 3)
			clock.add(start, now());
	}
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	pthread_barrier_init(&step_end, nullptr, 4);
	for (int part = 0; part < 4; part++)
		threads.emplace_back(solve, part);
	for (auto &thread : threads)
		thread.join();
}
