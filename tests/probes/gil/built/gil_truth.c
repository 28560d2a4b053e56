// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Logs what really happened to the GIL: an LD_PRELOAD library that wraps the libc
 * calls by which CPython waits for, takes and drops it. Every wait and drop of the
 * process is stored in memory and written at exit to the file in GIL_TRUTH, one JSON
 * object per line:
 *	{"wait": [tid, start, end, cond, ret]}   times: CLOCK_MONOTONIC, ns
 *	{"drop": [tid, time, cond]}
 *	{"switch": [tid, start, end, cond]}
 * A drop is a signal of the condition. Drops and the starts and ends of waits are
 * under gil->mutex, so that their times have the true order. A "drop" of switch_cond, 88
 * bytes after a GIL's condition, means that a thread took that GIL, and a "switch" is a
 * wait for that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define COND_TO_MUTEX 48 /* offset in struct _gil_runtime_state */
#define RECORDS	      (1 << 16)

struct record {
	uint64_t start, end;
	void *cond;
	int ret; /* result of a wait; -1: a drop; -2: a wait for a switch */
};

/* One thread's records, in blocks that are never freed. */
struct piece {
	struct piece *next;
	int tid;
	unsigned n;
	struct record records[RECORDS];
};

static struct piece *pieces;
static __thread struct piece *mine;
static uintptr_t text_start, text_end; /* of the runtime */
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_signal)(pthread_cond_t *);
static int (*real_plain_wait)(pthread_cond_t *, pthread_mutex_t *);

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void keep(uint64_t start, uint64_t end, void *cond, int ret)
{
	struct piece *p = mine;

	if (!p || p->n == RECORDS) {
		p = calloc(1, sizeof(*p));
		if (!p)
			abort();
		p->tid = gettid();
		mine = p;
		p->next = __atomic_load_n(&pieces, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&pieces, &p->next, p, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
	}
	p->records[p->n++] = (struct record){ start, end, cond, ret };
}

static int find_runtime(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t inside = (uintptr_t)arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || inside < start || inside >= start + p->p_memsz)
			continue;
		text_start = start;
		text_end = start + p->p_memsz;
		return 1;
	}
	return 0;
}

static void init(void)
{
	void *inside = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");

	if (inside)
		dl_iterate_phdr(find_runtime, inside);
	/* dlsym would return the oldest version, which is another function */
	real_signal = (int (*)(pthread_cond_t *))dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	real_wait = (int (*)(pthread_cond_t *, pthread_mutex_t *,
			     const struct timespec *))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	real_plain_wait =
		(int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	if (!real_wait || !real_signal || !real_plain_wait)
		abort();
}

static int from_runtime(void *caller)
{
	if (!real_wait)
		init();
	return (uintptr_t)caller >= text_start && (uintptr_t)caller < text_end;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	int gil = from_runtime(__builtin_return_address(0)) && (char *)mutex - (char *)cond == COND_TO_MUTEX;
	uint64_t start;
	int ret;

	if (!gil)
		return real_wait(cond, mutex, until);
	start = now();
	ret = real_wait(cond, mutex, until);
	keep(start, now(), cond, ret);
	return ret;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int gil = from_runtime(__builtin_return_address(0)) && (char *)mutex - (char *)cond == COND_TO_MUTEX;
	uint64_t start;
	int ret;

	if (!gil)
		return real_plain_wait(cond, mutex);
	start = now();
	ret = real_plain_wait(cond, mutex);
	keep(start, now(), cond, -2);
	return ret;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	uint64_t start;
	int ret;

	if (!from_runtime(__builtin_return_address(0)))
		return real_signal(cond);
	start = now();
	ret = real_signal(cond);
	keep(start, start, cond, -1);
	return ret;
}

__attribute__((destructor)) static void dump(void)
{
	const char *path = getenv("GIL_TRUTH");
	struct piece *p;
	unsigned i;
	FILE *f;

	f = path ? fopen(path, "w") : NULL;
	if (!f)
		return;
	for (p = __atomic_load_n(&pieces, __ATOMIC_ACQUIRE); p; p = p->next) {
		for (i = 0; i < p->n; i++) {
			struct record *r = &p->records[i];

			if (r->ret == -2)
				fprintf(f, "{\"switch\": [%d, %lu, %lu, %lu]}\n", p->tid, r->start, r->end,
					(unsigned long)r->cond);
			else if (r->ret < 0)
				fprintf(f, "{\"drop\": [%d, %lu, %lu]}\n", p->tid, r->start, (unsigned long)r->cond);
			else
				fprintf(f, "{\"wait\": [%d, %lu, %lu, %lu, %d]}\n", p->tid, r->start, r->end,
					(unsigned long)r->cond, r->ret);
		}
	}
	fclose(f);
}
