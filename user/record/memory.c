// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits the worker's own memory. Each table has a limit of its own, and their sum is far below the limit that the
 * kernel enforces here, which is for unforeseen cases. RLIMIT_DATA is used and not RLIMIT_AS, because the rings
 * (shared with the kernel) and libraries are not private memory.
 *
 * Near the limit all caches are freed. If that does not help, the recording ends in order, with the memory between
 * the soft limit and the hard one, before an allocation fails.
 */
#include "record/memory.h"

#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/native.h"
#include "record/stacks/stacks.h"
#include "trace/strings.h"
#include "util/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define DATA_MAX      (1024ULL << 20)
#define DATA_RESERVE  (128ULL << 20) /* for an orderly end */
#define HIGH_PERCENT  80
#define FULL_PERCENT  90
#define AGAIN_PERCENT 1 /* percent of the limit: the growth after which the caches are freed again */
#define AGAIN_AFTER   10000000000ULL /* ns */
#define TABLES_EVERY  10000000000ULL /* ns */
#define LARGE	      (256 << 10) /* bytes: larger allocations are mappings of their own, without holes in the heap */
#define FILES_MAX     16384 /* descriptors: a probed file needs one or two */
#define FILES_MIN     256 /* descriptors: what a short recording of one process needs */

/* Returns the bytes of private writable memory, as RLIMIT_DATA counts them; 0: unknown. */
static u64 data_bytes(const struct memory *m)
{
	unsigned long long data = 0;
	char text[256];
	ssize_t n = m->statm_fd > 0 ? pread(m->statm_fd, text, sizeof(text) - 1, 0) : 0;

	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%*u %*u %*u %*u %*u %llu", &data) != 1)
		return 0;
	return data * (u64)sysconf(_SC_PAGESIZE);
}

static void set_limit(int resource, u64 soft, u64 hard)
{
	struct rlimit now, next;

	if (getrlimit(resource, &now))
		return;
	next.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
	next.rlim_cur = soft < next.rlim_max ? soft : next.rlim_max;
	setrlimit(resource, &next);
}

int memory__raise_files(char *err, size_t len)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= FILES_MAX)
		return 0;
	/* without CAP_SYS_RESOURCE the hard limit can't be raised */
	if (files.rlim_max >= FILES_MAX || setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES_MAX, FILES_MAX }))
		set_limit(RLIMIT_NOFILE, FILES_MAX, files.rlim_max);
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= FILES_MIN)
		return 0;
	snprintf(err, len, "sonde may have at most %llu files open, and needs %d: raise the hard limit (ulimit -Hn)",
		 (unsigned long long)files.rlim_cur, FILES_MIN);
	return -EMFILE;
}

void memory__limit(struct session *s)
{
	/* a fixed value: otherwise the C library raises it with each large block that is freed, up to 32 MiB */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	if (SANITIZED) /* the sanitizer's own mappings count, too */
		return;
	s->memory.statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	set_limit(RLIMIT_DATA, DATA_MAX, DATA_MAX + DATA_RESERVE);
	/* for tests: the limit is reached at once, or nearly so after the start's memory is freed */
	s->memory.max = session__test_switch("small-memory") ? data_bytes(&s->memory) :
			session__test_switch("near-memory")  ? data_bytes(&s->memory) * 100 / (HIGH_PERCENT + 8) :
							       DATA_MAX;
}

/*
 * Frees the caches. Their contents are then looked up, numbered and written again; so that the trace does not grow
 * without end by that, it is repeated only when as much memory is allocated again, or after a while.
 */
static void free_caches(struct session *s, u64 now, u64 bytes)
{
	u64 left;

	if (bytes < s->memory.again && now < s->memory.again_time && bytes * 100 < s->memory.max * FULL_PERCENT)
		return;
	stack_records__trim(s, now);
	if (s->native)
		native__trim(s->native);
	trace_writer__forget_texts(s->writer);
	trace_writer__flush(s->writer);
	malloc_trim(0);
	left = data_bytes(&s->memory) + s->memory.max * AGAIN_PERCENT / 100;
	s->memory.again = bytes > left ? bytes : left;
	s->memory.again_time = now + AGAIN_AFTER;
}

int memory__poll(struct session *s, u64 now, char *err, size_t len)
{
	struct rlimit data;
	u64 bytes;

	if (now >= s->memory.next_tables)
		memory__write_tables(s);
	if (!s->memory.max)
		return 0;
	bytes = data_bytes(&s->memory);
	if (bytes * 100 < s->memory.max * HIGH_PERCENT)
		return 0;
	free_caches(s, now, bytes);
	if (!s->memory.warned)
		session__warn(
			s,
			"sonde uses %llu MiB of its limit of %llu MiB of memory: it frees its caches of stacks, symbols and "
			"texts, which are written again when they are needed",
			bytes >> 20, s->memory.max >> 20);
	s->memory.warned = true;
	bytes = data_bytes(&s->memory);
	if (bytes * 100 < s->memory.max * FULL_PERCENT)
		return 0;
	if (!getrlimit(RLIMIT_DATA, &data)) {
		data.rlim_cur = data.rlim_max;
		setrlimit(RLIMIT_DATA, &data);
	}
	snprintf(
		err, len,
		"sonde uses %llu MiB of its limit of %llu MiB of memory, and ends before it runs out; what was "
		"recorded until now is whole and readable. Trace less: fewer families (-t), fewer processes (-p, --comm)",
		bytes >> 20, s->memory.max >> 20);
	return -ENOMEM;
}

static void write_size(const struct table_size *size, void *arg)
{
	struct session *s = arg;
	struct meta_table e = {
		.event = session__event(s, ID_meta_table),
		.entries = size->entries,
		.max = size->max,
		.bytes = size->bytes,
		.evicted = size->evicted,
		.table = session__intern(s, size->name),
	};

	session__emit(s, &e, sizeof(e));
}

static void write_sizes_of(struct session *s, const struct family_host *h, u8 family, void *arg)
{
	if (h->sizes)
		h->sizes(s, write_size, s);
}

/*
 * Writes the size of all tables and buffers together, and the memory that the allocator has from the system: the
 * difference is holes.
 */
static void write_heap(struct session *s)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	write_size(&(struct table_size){ .name = "heap in use", .bytes = m.uordblks + m.hblkhd }, s);
	write_size(&(struct table_size){ .name = "heap", .bytes = m.arena + m.hblkhd }, s);
#endif
}

void memory__write_tables(struct session *s)
{
	const struct strings *texts = trace_writer__texts(s->writer);

	write_heap(s);
	objects__sizes(s->objects, write_size, s);
	if (s->stacks)
		stack_records__sizes(s->stacks, write_size, s);
	if (s->native)
		native__sizes(s->native, write_size, s);
	write_size(&(struct table_size){ .name = "texts",
					 .entries = strings__entries(texts),
					 .max = 2 * (texts->max ? texts->max : STRINGS_MAX),
					 .bytes = strings__bytes(texts),
					 .evicted = texts->evicted },
		   s);
	write_size(&(struct table_size){ .name = "records to be written", .bytes = trace_writer__buffers(s->writer) },
		   s);
	losses__sizes(s->losses, write_size, s);
	hosts__each(s, write_sizes_of, NULL);
	s->memory.next_tables = session__now(s) + TABLES_EVERY;
}

void memory__close(struct memory *m)
{
	if (m->statm_fd > 0)
		close(m->statm_fd);
}
