// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The service of cpp_mutex. Its clock writes the cells that lib/incident.py describes.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <csignal>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

static const uint64_t bucket_ns = 100000000, buckets = 3000;

static uint64_t now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

struct Clock {
	uint64_t *cells, base;

	explicit Clock(const char *name)
	{
		std::string path = std::string(getenv("INCIDENT_CLOCKS")) + "/" + name + "." + std::to_string(getpid()) + "." +
				   std::to_string(gettid());
		int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);

		if (ftruncate(fd, 8 * (buckets + 2)))
			abort();
		cells = static_cast<uint64_t *>(mmap(nullptr, 8 * (buckets + 2), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
		base = strtoull(getenv("INCIDENT_BASE"), nullptr, 10);
		close(fd);
	}
	void add(uint64_t start, uint64_t end)
	{
		cells[1]++;
		while (start < end) {
			uint64_t bucket = (start - base) / bucket_ns, edge = std::min(end, base + (bucket + 1) * bucket_ns);

			if (bucket < buckets)
				cells[2 + bucket] += edge - start;
			start = edge;
		}
	}
};

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

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	threads.emplace_back(refresh);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(answer);
	for (auto &thread : threads)
		thread.join();
}
