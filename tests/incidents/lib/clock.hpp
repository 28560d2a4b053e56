// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The clock of the programs in C++. It writes the cells that lib/incident.py describes.
#pragma once
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static const uint64_t bucket_ns = 100000000, buckets = 3000;

static inline uint64_t now()
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

// Ends this process with the program that started it.
static inline void end_with_parent()
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}
