// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/mmaps.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define PAGES 64 /* pages of each CPU's buffer: about 2000 records */

struct mmaps {
	int *fds;
	struct perf_event_mmap_page **pages;
	u32 n;
	size_t page;
	char record[65536]; /* a record that wraps around the end of the buffer */
};

/* PERF_RECORD_MMAP2, include/uapi/linux/perf_event.h, with PERF_SAMPLE_TIME as its only sample_id */
struct record_mmap2 {
	struct perf_event_header header;
	u32 pid, tid;
	u64 addr, len, pgoff;
	u32 maj, min;
	u64 ino, ino_generation;
	u32 prot, flags;
	char filename[];
};

static int open_cpu(struct mmaps *m, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.mmap = 1,
		.mmap2 = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	void *map;
	int fd = syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	map = mmap(NULL, m->page * (PAGES + 1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	m->fds[m->n] = fd;
	m->pages[m->n++] = map;
	return 0;
}

int mmaps__open(struct mmaps **out)
{
	int cpus = get_nprocs_conf(), err;
	struct mmaps *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->page = sysconf(_SC_PAGESIZE);
	m->fds = calloc(cpus, sizeof(*m->fds));
	m->pages = calloc(cpus, sizeof(*m->pages));
	if (!m->fds || !m->pages) {
		mmaps__close(m);
		return -ENOMEM;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		err = open_cpu(m, cpu);
		if (err && err != -ENODEV) { /* -ENODEV: the CPU is offline */
			mmaps__close(m);
			return err;
		}
	}
	*out = m;
	return 0;
}

void mmaps__close(struct mmaps *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->n; i++) {
		munmap(m->pages[i], m->page * (PAGES + 1));
		close(m->fds[i]);
	}
	free(m->fds);
	free(m->pages);
	free(m);
}

u32 mmaps__fds(const struct mmaps *m, const int **fds)
{
	*fds = m->fds;
	return m->n;
}

static void decode(const struct perf_event_header *h, void (*fn)(const struct mmap_record *r, void *arg), void *arg)
{
	const struct record_mmap2 *r = (const void *)h;
	struct mmap_record out;

	if (h->size < sizeof(*r) + sizeof(u64) + 1)
		return;
	out = (struct mmap_record){
		.pid = r->pid,
		.start = r->addr,
		.len = r->len,
		.offset = r->pgoff,
		.maj = r->maj,
		.min = r->min,
		.ino = r->ino,
		.generation = r->ino_generation,
		.path = r->filename,
	};
	memcpy(&out.time, (const char *)h + h->size - sizeof(u64), sizeof(u64));
	fn(&out, arg);
}

/* The record at the tail, copied if it wraps. */
static const struct perf_event_header *peek(struct mmaps *m, const char *data, u64 tail, u64 size)
{
	const struct perf_event_header *h = (const void *)(data + tail % size);
	u64 first = size - tail % size;

	/* records are 8-aligned, so the header itself never wraps */
	if (h->size <= first)
		return h;
	memcpy(m->record, h, first);
	memcpy(m->record + first, data, h->size - first);
	return (const void *)m->record;
}

u64 mmaps__drain(struct mmaps *m, void (*fn)(const struct mmap_record *r, void *arg), void *arg)
{
	u64 lost = 0, size = m->page * PAGES;

	for (u32 i = 0; i < m->n; i++) {
		struct perf_event_mmap_page *p = m->pages[i];
		const char *data = (const char *)p + m->page;
		u64 head = __atomic_load_n(&p->data_head, __ATOMIC_ACQUIRE), tail = p->data_tail;

		while (tail < head) {
			const struct perf_event_header *h = peek(m, data, tail, size);

			if (h->type == PERF_RECORD_MMAP2)
				decode(h, fn, arg);
			else if (h->type == PERF_RECORD_LOST && h->size >= 24)
				lost += ((const u64 *)h)[2];
			if (h->size < sizeof(*h))
				break;
			tail += h->size;
		}
		__atomic_store_n(&p->data_tail, head, __ATOMIC_RELEASE);
	}
	return lost;
}
