// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hash table that only grows, so it is searched without a lock. If it is full, or another thread is adding to it, a
 * text is recorded whenever its id is requested.
 */
#define _GNU_SOURCE
#include "texts.h"

#include "shim.h"

#include <string.h>
#include <sys/mman.h>

#define SLOTS	   131072 /* a power of two */
#define TEXTS_MAX  65536
#define BYTES_MAX  (4 << 20) /* of all texts */
#define PROBES_MAX 64
#define LEN_MAX	   2000

struct text {
	uint64_t id;
	uint32_t len;
	uint32_t sent[LANE_KINDS]; /* the generation in which it was recorded */
	char bytes[];
};

static struct {
	struct text **slots; /* NULL: none yet */
	char *arena;
	size_t used;
	uint32_t n;
	uint32_t lock;
	uint32_t generation[LANE_KINDS];
	bool recording[LANE_KINDS];
} texts;

static uint64_t hash(const char *p, size_t len)
{
	uint64_t h = len * 0x9e3779b97f4a7c15ULL, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, p, len);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 29;
	return h ? h : 1;
}

static struct text *find(uint64_t id)
{
	struct text **slots = __atomic_load_n(&texts.slots, __ATOMIC_ACQUIRE), *t;

	for (uint64_t i = 0; slots && i < PROBES_MAX; i++) {
		t = __atomic_load_n(&slots[(id + i) % SLOTS], __ATOMIC_ACQUIRE);
		if (!t || t->id == id)
			return t;
	}
	return NULL;
}

static bool make_room(void)
{
	if (texts.slots)
		return true;
	texts.arena = mmap(NULL, SLOTS * sizeof(*texts.slots) + BYTES_MAX, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (texts.arena == MAP_FAILED)
		return false;
	__atomic_store_n(&texts.slots, (struct text **)(texts.arena + BYTES_MAX), __ATOMIC_RELEASE);
	return true;
}

static struct text *add_locked(uint64_t id, const char *bytes, size_t len)
{
	size_t size = (sizeof(struct text) + len + 8) & ~7ULL; /* with a NUL */
	struct text *t;

	if (!make_room() || texts.n == TEXTS_MAX || texts.used + size > BYTES_MAX)
		return NULL;
	for (uint64_t i = 0; i < PROBES_MAX; i++) {
		struct text **slot = &texts.slots[(id + i) % SLOTS];

		if (*slot && (*slot)->id == id)
			return *slot;
		if (*slot)
			continue;
		t = (struct text *)(texts.arena + texts.used);
		t->id = id;
		t->len = (uint32_t)len;
		memcpy(t->bytes, bytes, len);
		texts.used += size;
		texts.n++;
		__atomic_store_n(slot, t, __ATOMIC_RELEASE);
		return t;
	}
	return NULL;
}

/* Without waiting: this thread may be in a signal handler that has interrupted the holder of the lock. */
static struct text *add(uint64_t id, const char *bytes, size_t len)
{
	struct text *t;

	if (__atomic_exchange_n(&texts.lock, 1, __ATOMIC_ACQUIRE))
		return NULL;
	t = add_locked(id, bytes, len);
	__atomic_store_n(&texts.lock, 0, __ATOMIC_RELEASE);
	return t;
}

static bool record(enum lane_kind lane, uint16_t record_kind, uint64_t id, const char *text, size_t len)
{
	return lane__record_text(lane, record_kind, &id, sizeof(id), text, len);
}

uint64_t text__id(enum lane_kind lane, uint16_t record_kind, const char *text, size_t len)
{
	uint64_t id;

	if (len > LEN_MAX)
		len = LEN_MAX;
	id = hash(text, len);
	if (!find(id) && !add(id, text, len) && texts.recording[lane])
		record(lane, record_kind, id, text, len);
	return id;
}

void text__use(enum lane_kind lane, uint16_t record_kind, uint64_t id)
{
	struct text *t = id ? find(id) : NULL;
	uint32_t now;

	if (!t || !texts.recording[lane])
		return;
	now = __atomic_load_n(&texts.generation[lane], __ATOMIC_ACQUIRE);
	if (t->sent[lane] != now && record(lane, record_kind, id, t->bytes, t->len))
		t->sent[lane] = now;
}

const char *text__of(uint64_t id)
{
	const struct text *t = id ? find(id) : NULL;

	return t ? t->bytes : "";
}

void texts__set_recording(enum lane_kind lane, bool recording)
{
	if (recording)
		__atomic_fetch_add(&texts.generation[lane], 1, __ATOMIC_RELEASE);
	texts.recording[lane] = recording;
}

/* The holder of the lock, if there was one, is a thread of the parent. */
void texts__after_fork(void)
{
	texts.lock = 0;
	memset(texts.recording, 0, sizeof(texts.recording));
}
