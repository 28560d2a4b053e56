// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_malloc: threads that allocate and free many short texts.
#include <string>
#include <thread>
#include <vector>

#include "clock.hpp"

static volatile size_t total;

__attribute__((noinline)) static void parse_row(long number)
{
	std::vector<std::string *> cells;

	for (int cell = 0; cell < 40; cell++)
		cells.push_back(new std::string(1100 + (number + cell) % 500, 'x'));
	for (std::string *cell : cells) {
		total = total + cell->size();
		delete cell;
	}
}

static void work()
{
	for (long number = 0;; number++)
		parse_row(number);
}

int main()
{
	std::vector<std::thread> threads;

	end_with_parent();
	for (int i = 0; i < 8; i++)
		threads.emplace_back(work);
	for (auto &thread : threads)
		thread.join();
}
