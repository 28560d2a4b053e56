// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Eight threads that render tiles, each into a new mapping of 8 MB. */
#include <sys/mman.h>
#include <thread>
#include <vector>

static const size_t TILE = 8 << 20;

__attribute__((noinline)) static unsigned render_tile(unsigned seed)
{
	auto *tile = static_cast<unsigned char *>(
		mmap(nullptr, TILE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	unsigned sum = 0;

	if (tile == MAP_FAILED)
		return 0;
	for (size_t at = 0; at < TILE; at += 4096) {
		tile[at] = seed + at;
		sum += tile[at];
	}
	munmap(tile, TILE);
	return sum;
}

static void work(unsigned seed)
{
	for (;;)
		seed = render_tile(seed);
}

int main()
{
	std::vector<std::thread> threads;

	for (unsigned i = 0; i < 8; i++)
		threads.emplace_back(work, i);
	for (auto &thread : threads)
		thread.join();
}
