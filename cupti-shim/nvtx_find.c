// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NVTX's tables. Each library that includes NVTX 3 has a table of its own, a variable without an exported symbol
 * (nvtxGlobals_v3 in nvtxDetail/nvtxImpl.h). It is recognized by its content alone: two sizes, a version, and 64
 * pointers from its second half to its own slots.
 *
 *	  0	u32 state: 0 no call was made yet, 1 a thread is initializing the table, 2 complete
 *	  8	u64 16, and a function's address
 *	 24	u64 24, u32 3, u32 0, and a function's address
 *	 48	64 slots: the functions that NVTX calls; NULL: none
 *	560	six lists of pointers to these slots, each between two NULLs
 *
 * NVTX sets all slots to NULL at its first call if no tool is there. In a table without any call the shim does the same
 * in its place; it remains so, because NVTX can't be made to begin again.
 *
 * The libraries' data may be many megabytes that are still on the disk. So it is read without the loader's lock, by
 * /proc/self/mem, which fails where an object has been unloaded meanwhile.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "nvtx_find.h"

#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 2048
#define TABLES_MAX   128
#define BUFFER_BYTES 16384
#define HEAD_BYTES   offsetof(struct nvtx_table, lists[2]) /* of a table, which decide whether the rest is looked at */

static const struct {
	uint32_t first, n;
} modules[] = { { NVTX_TABLE_CORE, 15 },  { NVTX_TABLE_CUDA, 8 },   { NVTX_TABLE_OPENCL, 14 },
		{ NVTX_TABLE_CUDART, 6 }, { NVTX_TABLE_CORE2, 15 }, { NVTX_TABLE_SYNC, 6 } };

struct segment {
	uintptr_t begin, end;
	bool read;
};

static struct {
	struct segment *segments; /* of SEGMENTS_MAX; NULL: none were read yet */
	uint32_t n_segments;
	uintptr_t candidates[TABLES_MAX]; /* addresses of what may be tables */
	uint32_t n;
	unsigned long long adds, subs; /* of the loader: how often it has added and removed objects */
	bool has_scanned;
} found;

static bool is_table(const struct nvtx_table *t)
{
	const uint64_t *list = t->lists;

	if (t->callbacks_size != 16 || t->version_size != 24 || t->version != 3 || t->state > TABLE_COMPLETE)
		return false;
	for (size_t m = 0; m < sizeof(modules) / sizeof(modules[0]); m++) {
		if (*list++)
			return false;
		for (uint32_t i = 0; i < modules[m].n; i++)
			if (*list++ != (uint64_t)(uintptr_t)&t->slots[modules[m].first + i])
				return false;
		if (*list++)
			return false;
	}
	return true;
}

struct counters {
	unsigned long long adds, subs;
};

static int read_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(struct counters *)arg = (struct counters){ info->dlpi_adds, info->dlpi_subs };
	return 1;
}

bool nvtx_find__has_changed(void)
{
	struct counters c = { 0 };

	dl_iterate_phdr(read_counters, &c);
	return !found.has_scanned || c.adds != found.adds || c.subs != found.subs;
}

static bool is_known(uintptr_t begin)
{
	for (uint32_t i = 0; i < found.n_segments; i++)
		if (found.segments[i].begin == begin)
			return true;
	return false;
}

static void add_segment(uintptr_t begin, uintptr_t end)
{
	if (found.n_segments < SEGMENTS_MAX && !is_known(begin))
		found.segments[found.n_segments++] = (struct segment){ begin, end, false };
}

static bool is_data(const ElfW(Phdr) * p)
{
	return p->p_type == PT_LOAD && p->p_flags & PF_W && p->p_filesz >= sizeof(struct nvtx_table);
}

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	void (*old)(const char *path, uintptr_t begin, uintptr_t end) =
		(void (*)(const char *, uintptr_t, uintptr_t))arg;
	const char *name = strrchr(info->dlpi_name, '/');
	uintptr_t last = info->dlpi_addr;

	found.adds = info->dlpi_adds;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;

		if (is_data(p))
			add_segment((begin + 7) & ~7UL, begin + p->p_filesz);
		if (p->p_type == PT_LOAD && begin + p->p_memsz > last)
			last = begin + p->p_memsz;
	}
	if (name && !strncmp(name, "/libnvToolsExt.so", 17))
		old(info->dlpi_name, info->dlpi_addr, last);
	return 0;
}

static void note(const uint8_t *bytes, size_t n, uintptr_t at)
{
	for (size_t i = 0; i + HEAD_BYTES <= n; i += 8) {
		struct nvtx_table head;

		memcpy(&head, bytes + i, HEAD_BYTES);
		if (head.callbacks_size == 16 && head.version_size == 24 && head.version == 3 &&
		    head.lists[1] == at + i + offsetof(struct nvtx_table, slots) && found.n < TABLES_MAX)
			found.candidates[found.n++] = at + i;
	}
}

static void read_segment(struct segment *s, int memory)
{
	static uint8_t buffer[BUFFER_BYTES];
	uintptr_t at = s->begin;

	s->read = true;
	while (at + sizeof(struct nvtx_table) <= s->end) {
		size_t n = s->end - at < sizeof(buffer) ? s->end - at : sizeof(buffer);
		ssize_t got = pread(memory, buffer, n, (off_t)at);

		if (got < (ssize_t)HEAD_BYTES)
			return;
		note(buffer, (size_t)got, at);
		if ((size_t)got < n || n < sizeof(buffer))
			return;
		/* a table's head may begin in the last bytes */
		at += n - HEAD_BYTES + 8;
	}
}

static int pass_tables(struct dl_phdr_info *info, size_t size, void *arg)
{
	void (*fn)(struct nvtx_table * t, const char *path) = (void (*)(struct nvtx_table *, const char *))arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;

		for (uint32_t k = 0; is_data(p) && k < found.n; k++) {
			struct nvtx_table *t = (struct nvtx_table *)found.candidates[k];

			if ((uintptr_t)t >= begin && (uintptr_t)(t + 1) <= begin + p->p_filesz && is_table(t))
				fn(t, info->dlpi_name);
		}
	}
	return 0;
}

void nvtx_find__each(void (*fn)(struct nvtx_table *t, const char *path),
		     void (*old)(const char *path, uintptr_t begin, uintptr_t end))
{
	struct counters c = { 0 };
	int memory;

	if (!found.segments)
		found.segments = calloc(SEGMENTS_MAX, sizeof(*found.segments));
	if (!found.segments)
		return;
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	dl_iterate_phdr(read_counters, &c);
	/* another object may be where one was unloaded */
	if (c.subs != found.subs)
		found.n = found.n_segments = 0;
	found.subs = c.subs;
	found.has_scanned = true;
	dl_iterate_phdr(collect, (void *)old);
	for (uint32_t i = 0; memory >= 0 && i < found.n_segments; i++)
		if (!found.segments[i].read)
			read_segment(&found.segments[i], memory);
	if (memory >= 0)
		close(memory);
	dl_iterate_phdr(pass_tables, (void *)fn);
}

void nvtx_find__again(void (*fn)(struct nvtx_table *t, const char *path))
{
	dl_iterate_phdr(pass_tables, (void *)fn);
	found.has_scanned = false;
}
