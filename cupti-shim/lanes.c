// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "lanes.h"

#include "shim.h"
#include "texts.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LANE_BYTES  32768 /* a power of two */
#define THREADS_MAX 4096
#define ENDED_EVERY 10 /* calls of lanes__reclaim from one search for ended threads to the next */

/* From `head` on the thread writes, up to it others may read. Both count bytes, and never wrap. */
struct lane {
	uint64_t head, tail;
	uint64_t next; /* head, once the record that is being written is complete */
	uint32_t reading; /* 1: a thread hands over what is between tail and head */
	uint32_t own_flushes, seen_flushes; /* by the thread itself; those at the last lanes__collect() */
	uint64_t flush_ns; /* in own_flushes */
	uint64_t lost;
	uint8_t *data; /* NULL: none yet */
	uint8_t *room; /* of the owner of this kind */
	size_t room_bytes;
};

struct lane_thread {
	struct lane lanes[LANE_KINDS];
	struct lane_thread *next;
	uint32_t tid; /* 0: free */
	uint32_t busy; /* the thread is writing a record */
};

/* In the static part of a thread's memory, which needs no call to find it. */
static __thread struct lane_thread *own __attribute__((tls_model("initial-exec")));
static struct lane_thread *threads; /* all, also free ones; never shrinks */
static uint32_t n_threads;
static uint64_t too_many_lost[LANE_KINDS];
static uint64_t numbers[LANE_KINDS]; /* of batches */

#define LANE_SITE(up, site)                                                                     \
	SHIM_EXPORT void site(const void *batch, uint64_t bytes);                               \
	__asm__(".text\n.globl " #site "\n.type " #site ", @function\n.p2align 4\n" #site ":\n" \
		"	nop\n	ret\n.size " #site ", . - " #site "\n");
LANES(LANE_SITE)

#define SITE_OF(up, site) site,
static void (*const sites[])(const void *batch, uint64_t bytes) = { LANES(SITE_OF) };

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct lane_thread *take_free(uint32_t tid)
{
	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		uint32_t none = 0;

		if (!t->tid &&
		    __atomic_compare_exchange_n(&t->tid, &none, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return t;
	}
	return NULL;
}

static struct lane_thread *add_thread(uint32_t tid)
{
	struct lane_thread *t;

	if (__atomic_fetch_add(&n_threads, 1, __ATOMIC_RELAXED) >= THREADS_MAX || !(t = map(sizeof(*t)))) {
		__atomic_fetch_sub(&n_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t->tid = tid;
	t->next = __atomic_load_n(&threads, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&threads, &t->next, t, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return t;
}

struct lane_thread *lane__thread(void)
{
	uint32_t tid;
	int saved;

	if (own)
		return own;
	saved = errno;
	tid = (uint32_t)syscall(SYS_gettid);
	own = take_free(tid);
	if (!own)
		own = add_thread(tid);
	errno = saved;
	return own;
}

uint32_t lane_thread__tid(const struct lane_thread *t)
{
	return t->tid;
}

uint64_t lane_thread__flush_ns(const struct lane_thread *t, enum lane_kind kind)
{
	return t->lanes[kind].flush_ns;
}

void *lane_thread__room(struct lane_thread *t, size_t bytes, enum lane_kind kind)
{
	struct lane *l = &t->lanes[kind];

	if (!l->room) {
		l->room_bytes = bytes;
		__atomic_store_n(&l->room, map(bytes), __ATOMIC_RELEASE);
	}
	return l->room;
}

static struct shim_record *record_at(const struct lane *l, uint64_t at)
{
	return (struct shim_record *)(l->data + at % LANE_BYTES);
}

/* Hands over records from `at` on, up to `end` at most, that lie behind each other. Returns how many bytes they are. */
static uint64_t hand_over(const struct lane *l, enum lane_kind kind, uint64_t at, uint64_t end)
{
	struct shim_lane_batch b = { .batch = { .magic = SHIM_MAGIC, .version = SHIM_VERSION } };
	uint64_t bytes = 0;

	b.at = (uintptr_t)record_at(l, at);
	while (at + bytes < end && b.batch.records < SHIM_BATCH_RECORDS) {
		const struct shim_record *r = record_at(l, at + bytes);

		/* what is left at the end of the buffer */
		if (!r->kind && !bytes)
			return r->size;
		if (!r->kind || sizeof(b.batch) + bytes + r->size > SHIM_BATCH_MAX ||
		    (at + bytes) % LANE_BYTES < at % LANE_BYTES)
			break;
		bytes += r->size;
		b.batch.records++;
	}
	b.batch.bytes = (uint32_t)(sizeof(b.batch) + bytes);
	b.batch.number = __atomic_add_fetch(&numbers[kind], 1, __ATOMIC_RELAXED);
	sites[kind](&b, sizeof(b));
	return bytes;
}

static void flush(struct lane *l, enum lane_kind kind)
{
	uint32_t none = 0;
	uint64_t head;

	if (!__atomic_compare_exchange_n(&l->reading, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	head = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE);
	while (l->tail < head)
		__atomic_store_n(&l->tail, l->tail + hand_over(l, kind, l->tail, head), __ATOMIC_RELEASE);
	__atomic_store_n(&l->reading, 0, __ATOMIC_RELEASE);
}

/* Memory at the head for `size` bytes in one piece; NULL: there is not enough. */
static void *reserve(struct lane *l, uint64_t size)
{
	uint64_t rest = LANE_BYTES - l->head % LANE_BYTES, at = l->head + (size > rest ? rest : 0);

	if (at + size - __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE) > LANE_BYTES)
		return NULL;
	if (at != l->head) {
		record_at(l, l->head)->size = (uint16_t)rest;
		record_at(l, l->head)->kind = 0;
	}
	l->next = at + size;
	return record_at(l, at);
}

void *lane__record(enum lane_kind kind, uint16_t record_kind, size_t body, uint64_t start, uint64_t end)
{
	size_t size = (sizeof(struct shim_record) + body + 7) & ~7ULL;
	struct lane_thread *t = lane__thread();
	struct shim_record *r = NULL;
	struct lane *l;

	if (!t) {
		__atomic_fetch_add(&too_many_lost[kind], 1, __ATOMIC_RELAXED);
		return NULL;
	}
	l = &t->lanes[kind];
	if (!l->data)
		l->data = map(LANE_BYTES);
	if (l->data && !t->busy && size <= SHIM_RECORD_MAX)
		r = reserve(l, size);
	if (!r) {
		l->lost++;
		return NULL;
	}
	t->busy = 1;
	memset(r, 0, size);
	*r = (struct shim_record){
		.size = (uint16_t)size, .kind = record_kind, .tid = t->tid, .start = start, .end = end
	};
	return r + 1;
}

void lane__commit(enum lane_kind kind)
{
	struct lane *l = &own->lanes[kind];
	uint64_t before;

	__atomic_store_n(&l->head, l->next, __ATOMIC_RELEASE);
	own->busy = 0;
	if (l->head - __atomic_load_n(&l->tail, __ATOMIC_RELAXED) <= LANE_BYTES / 2)
		return;
	__atomic_store_n(&l->own_flushes, l->own_flushes + 1, __ATOMIC_RELAXED);
	before = shim__now();
	flush(l, kind);
	l->flush_ns += shim__now() - before;
}

bool lane__record_text_at(enum lane_kind kind, uint16_t record_kind, uint64_t time, const void *body, size_t size,
			  const char *text, size_t len)
{
	size_t room = SHIM_RECORD_MAX - sizeof(struct shim_record) - size - 8;
	char *at;

	if (len > room)
		len = room;
	at = lane__record(kind, record_kind, size + len + 1, 0, time);
	if (!at)
		return false;
	memcpy(at, body, size);
	memcpy(at + size, text, len);
	lane__commit(kind);
	return true;
}

bool lane__record_text(enum lane_kind kind, uint16_t record_kind, const void *body, size_t size, const char *text,
		       size_t len)
{
	return lane__record_text_at(kind, record_kind, shim__now(), body, size, text, len);
}

void lane__report_state(enum lane_kind kind, uint16_t record_kind, enum gpu_shim_state state, const char *text)
{
	struct shim_state body = { .state = state, .groups = 1 };

	lane__record_text(kind, record_kind, &body, sizeof(body), text, strlen(text));
	lanes__flush(kind);
}

void lane__report_lost(enum lane_kind kind, uint16_t record_kind, uint64_t records, uint32_t reason)
{
	struct shim_lost *body = records ? lane__record(kind, record_kind, sizeof(*body), 0, shim__now()) : NULL;

	if (!body)
		return;
	*body = (struct shim_lost){ .records = records, .reason = reason };
	lane__commit(kind);
}

void lanes__discard(enum lane_kind kind)
{
	for (struct lane_thread *t = threads; t; t = t->next) {
		struct lane *l = &t->lanes[kind];
		uint32_t none = 0;

		if (!__atomic_compare_exchange_n(&l->reading, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&l->tail, __atomic_load_n(&l->head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
		__atomic_store_n(&l->reading, 0, __ATOMIC_RELEASE);
	}
}

static bool has_ended(uint32_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) && errno == ESRCH;
}

/* The thread has ended, so no other writes its lanes until its number is 0. */
static void set_free(struct lane_thread *t)
{
	for (int kind = 0; kind < LANE_KINDS; kind++) {
		struct lane *l = &t->lanes[kind];

		flush(l, kind);
		if (l->room)
			memset(l->room, 0, l->room_bytes);
	}
	t->busy = 0;
	__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);
}

void lanes__flush(enum lane_kind kind)
{
	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next)
		if (t->lanes[kind].data)
			flush(&t->lanes[kind], kind);
}

/*
 * While this thread hands over a lane's records, their owner can't, and may fill the rest of the lane meanwhile. So the
 * lanes of threads that do it themselves often enough are left to them.
 */
void lanes__collect(enum lane_kind kind)
{
	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		struct lane *l = &t->lanes[kind];
		uint32_t flushes = __atomic_load_n(&l->own_flushes, __ATOMIC_RELAXED);

		if (l->data && flushes == l->seen_flushes)
			flush(l, kind);
		l->seen_flushes = flushes;
	}
}

void lanes__reclaim(void)
{
	static uint32_t calls;

	if (++calls % ENDED_EVERY)
		return;
	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		uint32_t tid = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);

		if (tid && has_ended(tid))
			set_free(t);
	}
}

uint64_t lanes__lost(enum lane_kind kind, uint64_t *too_many)
{
	static uint64_t reported[LANE_KINDS];
	uint64_t lost = 0, news;

	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next)
		lost += t->lanes[kind].lost;
	news = lost - reported[kind];
	reported[kind] = lost;
	*too_many = __atomic_exchange_n(&too_many_lost[kind], 0, __ATOMIC_RELAXED);
	return news;
}

void lanes__each(enum lane_kind kind, void (*fn)(struct lane_thread *t, void *room, void *arg), void *arg)
{
	for (struct lane_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		void *room = __atomic_load_n(&t->lanes[kind].room, __ATOMIC_ACQUIRE);

		if (room && t->tid)
			fn(t, room, arg);
	}
}

/* The buffers of the parent's other threads are free; what the parent had not handed over is the parent's. */
void lanes__after_fork(void)
{
	for (struct lane_thread *t = threads; t; t = t->next) {
		for (int kind = 0; kind < LANE_KINDS; kind++) {
			struct lane *l = &t->lanes[kind];

			l->tail = l->head;
			l->reading = 0;
			if (l->room)
				memset(l->room, 0, l->room_bytes);
		}
		t->busy = 0;
		t->tid = t == own ? (uint32_t)syscall(SYS_gettid) : 0;
	}
	texts__after_fork();
}
