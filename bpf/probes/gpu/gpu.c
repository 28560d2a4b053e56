// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host's side of the shim: raises the semaphores of what it is to trace in each selected process, lowers them before
 * tracing stops, and waits for the records that the shim still has.
 */
#include "gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/library.h"
#include "record/family.h"
#include "util/array.h"
#include "util/lock.h"

#define LIBRARY "libsonde-cupti.so"
/* Numbers by which the links of one process are known, and of all: no object of the trace has such ones (LINK_OBJECT). */
#define CONTROL_OBJECT(number) (0x10000u | (number))
#define CONTROL_FIRST	       0x8000
#define CONTROL_LAST	       0xffff
#define LOOK_EVERY	       250000000 /* ns */
#define DROPPED_BY_END	       4 /* shim_dropped.reason */

/* A process with the shim. */
struct target {
	u32 pid;
	u64 dev, ino; /* of the shim that it is linked for: after an exec that may be another file */
	u32 links; /* the number of its links, 0: it has none */
	bool active; /* it has CUPTI, and something is to come when it lets go */
	bool gone; /* it has ended; what it sent may not have been handled yet */
	u64 gone_drained; /* session__drained() when that was seen */
};

/* One session at a time records. */
static struct {
	struct target *list;
	u32 n;
	u32 last_links; /* the last number given */
	u64 next_look; /* which of them are gone; ns */
	bool dropped; /* the control links */
	bool warned_text, warned_link;
	int slot; /* of those that each shim has for tracers */
	int slot_fd; /* holds the lock by which other tracers know that it is taken */
} gpu = { .slot_fd = -1 };

static bool is_runtime(struct elf *elf, const char *path)
{
	return library__is(elf, LIBRARY, "sonde_cupti_control_kernels");
}

static struct target *find(u32 pid)
{
	for (u32 i = 0; i < gpu.n; i++)
		if (gpu.list[i].pid == pid)
			return &gpu.list[i];
	return NULL;
}

static struct target *add(u32 pid)
{
	if (!array__room(gpu.list, gpu.n))
		return NULL;
	gpu.list[gpu.n] = (struct target){ .pid = pid };
	return &gpu.list[gpu.n++];
}

/*
 * At one probe site of a shim the kernel counts several tracers as one, so each tracer of this machine takes a slot of its
 * own, by a lock that only root can take, while this process still is root. With eight tracers at work, or with tracers in
 * containers that have a /run of their own, two may share a slot: the second then lacks the names reported before.
 */
static void prepare(struct session *s)
{
	u32 first = (u32)getpid() % SHIM_SLOTS;

	gpu.slot = (int)first;
	gpu.slot_fd = lock__open();
	for (u32 i = 0; gpu.slot_fd >= 0 && i < SHIM_SLOTS; i++)
		if (lock__take(gpu.slot_fd, LOCK_SLOTS + (first + i) % SHIM_SLOTS)) {
			gpu.slot = (int)((first + i) % SHIM_SLOTS);
			return;
		}
	if (gpu.slot_fd >= 0)
		session__warn(s,
			      "family gpu: %u tracers are at work already: kernels' names may be missing in this trace",
			      SHIM_SLOTS);
}

/* Where a shim has its places and semaphores, as offsets in the file; slots 0: an older one lacks the group. */
struct gpu_facts {
	struct {
		u64 place, semaphore;
		u64 slots;
	} groups[SHIM_GROUP_COUNT];
};

/* All slots of a symbol's object lie one after the other in the file. */
static bool has_slots(struct elf *elf, const struct elf_symbol *sym, u64 bytes, u64 *offset)
{
	u64 end;

	return bytes && !elf__offset(elf, sym->addr, offset) && !elf__offset(elf, sym->addr + bytes - 1, &end) &&
	       end - *offset == bytes - 1;
}

static void learn(struct elf *elf, void *own)
{
	static const char *const names[] = {
#define NAME(up, low) #low,
		SHIM_GROUPS(NAME)
	};
	struct elf_symbol place, semaphore;
	struct gpu_facts *f = own;
	char text[64];

	for (u32 i = 0; i < SHIM_GROUP_COUNT; i++) {
		u64 slots;

		snprintf(text, sizeof(text), "sonde_cupti_control_%s", names[i]);
		if (elf__find_symbol(elf, text, &place))
			continue;
		snprintf(text, sizeof(text), "sonde_cupti_semaphore_%s", names[i]);
		if (elf__find_symbol(elf, text, &semaphore))
			continue;
		slots = place.size / SHIM_CONTROL_BYTES;
		if (slots > SHIM_SLOTS)
			slots = SHIM_SLOTS;
		if (has_slots(elf, &place, slots * SHIM_CONTROL_BYTES, &f->groups[i].place) &&
		    has_slots(elf, &semaphore, slots * SHIM_SEMAPHORE_BYTES, &f->groups[i].semaphore))
			f->groups[i].slots = slots;
	}
}

/* The groups that are asked for. */
static u32 find_controls(struct session *s, const struct gpu_facts *f, u64 *offsets, u64 *counters)
{
	u32 skip = session__option(s, "gpu", "nodes") ? SHIM_GRAPHS : SHIM_NODES, n = 0;

	/* kernels last: a shim that waits for the probes, within cuInit, waits for those */
	for (u32 i = SHIM_GROUP_COUNT; i-- > 0;) {
		u64 slot;

		if (i == skip || !f->groups[i].slots)
			continue;
		slot = (u32)gpu.slot % f->groups[i].slots;
		offsets[n] = f->groups[i].place + slot * SHIM_CONTROL_BYTES;
		counters[n++] = f->groups[i].semaphore + slot * SHIM_SEMAPHORE_BYTES;
	}
	return n;
}

static bool has_links(u32 number)
{
	for (u32 i = 0; i < gpu.n; i++)
		if (gpu.list[i].links == number)
			return true;
	return false;
}

/* A number that no process's links have. */
static u32 next_links(void)
{
	u32 n = gpu.last_links;

	for (u32 tries = CONTROL_FIRST; tries <= CONTROL_LAST; tries++) {
		n = n >= CONTROL_FIRST && n < CONTROL_LAST ? n + 1 : CONTROL_FIRST;
		if (!has_links(n))
			break;
	}
	return gpu.last_links = n;
}

/* A process whose mapping of it is seen more often (the shim splits it) is asked once; a link outlives an exec. */
static void mapped(struct session *s, struct file_facts *file, const void *own, const struct mapping *m)
{
	u64 offsets[SHIM_GROUP_COUNT], counters[SHIM_GROUP_COUNT];
	struct target *t = find(m->pid);
	u32 n, links = t && t->links ? t->links : next_links();
	int err;

	if (gpu.dropped || (t && t->dev == m->dev && t->ino == m->ino))
		return;
	n = find_controls(s, own, offsets, counters);
	err = n ? session__link_process(s, "gpu_control", m, offsets, counters, n, CONTROL_OBJECT(links)) : -ENOENT;
	if (!err) {
		t = t ? t : add(m->pid);
		if (t) {
			t->dev = m->dev;
			t->ino = m->ino;
			t->links = links;
		}
		return;
	}
	if (err == -ESRCH || gpu.warned_link)
		return;
	gpu.warned_link = true;
	session__warn(s, "process %u: family gpu: its shim can't be switched on: %s", m->pid,
		      n ? strerror(-err) : "it lacks the places for that");
}

/* A target's words: nothing that moves a terminal's cursor. */
static void warn_text(struct session *s, u32 pid, const char *text, u32 len)
{
	char clean[256];
	u32 i;

	if (gpu.warned_text)
		return;
	gpu.warned_text = true;
	for (i = 0; i < len && i < sizeof(clean) - 1 && text[i]; i++)
		clean[i] = text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
	clean[i] = '\0';
	session__warn(s, "process %u: family gpu: %s", pid, clean);
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct gpu_shim *g = (const struct gpu_shim *)e;
	struct target *t;

	if (e->id != ID_gpu_shim || size < sizeof(*g))
		return;
	t = find(e->pid);
	if (!t)
		t = add(e->pid);
	/* another tracer's leaving is nothing to this one, and its own is the end */
	if (t && (g->shim.state != GPU_SHIM_LEFT || gpu.dropped))
		t->active = g->shim.state == GPU_SHIM_STARTED || g->shim.state == GPU_SHIM_IMPAIRED;
	/* why there is nothing, or not all */
	if (size > sizeof(*g) && g->text[0] && g->shim.state != GPU_SHIM_WAITING)
		warn_text(s, e->pid, g->text, size - sizeof(*g));
}

/* Also while it is a zombie. */
static bool is_gone(struct session *s, u32 pid)
{
	static struct process_image image; /* large */

	int err = session__image(s, pid, &image);

	return err != -ETIMEDOUT && (err || !image.exe[0]);
}

/* Killed, or it called _exit: the records that CUPTI still had are lost, and their number is not known. */
static void ended(struct session *s, const struct target *t)
{
	struct gpu_dropped d = {
		.event = { .time = session__now(s), .pid = t->pid, .tid = t->pid, .id = ID_gpu_dropped },
		.dropped.reason = DROPPED_BY_END,
	};

	if (t->active)
		session__emit(s, &d, sizeof(d));
}

static void find_the_gone(struct session *s)
{
	for (u32 i = 0; i < gpu.n; i++) {
		struct target *t = &gpu.list[i];

		if (!t->gone && is_gone(s, t->pid)) {
			t->gone = true;
			t->gone_drained = session__drained(s);
		}
	}
}

/*
 * Its last records, with GPU_SHIM_STOPPED among them, may have come while is_gone() waited for the answer: only what is
 * still active after these were handled has ended without them.
 */
static void forget_the_gone(struct session *s)
{
	u32 keep = 0;

	for (u32 i = 0; i < gpu.n; i++) {
		struct target *t = &gpu.list[i];

		if (t->gone && session__drained(s) > t->gone_drained) {
			ended(s, t);
			/* the kernel keeps a link of a process that has ended */
			if (t->links && !gpu.dropped)
				session__unlink_process(s, CONTROL_OBJECT(t->links));
		} else {
			gpu.list[keep++] = *t;
		}
	}
	gpu.n = keep;
}

static void tick(struct session *s, u64 now)
{
	forget_the_gone(s);
	if (now < gpu.next_look)
		return;
	gpu.next_look = now + LOOK_EVERY;
	find_the_gone(s);
}

/* The control links go first: the shims let go of CUPTI, flush, and say that this was all. */
static bool stopping(struct session *s)
{
	bool more = false;

	if (!gpu.dropped && gpu.n)
		session__unlink_process(s, CONTROL_OBJECT(0));
	gpu.dropped = true;
	tick(s, session__now(s));
	for (u32 i = 0; i < gpu.n; i++)
		more |= gpu.list[i].active;
	return more;
}

static void sizes(const struct session *s, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "processes with the shim",
				 .entries = gpu.n,
				 .bytes = array__bytes(gpu.list, gpu.n) },
	   arg);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("gpu_records"),
	FAMILY_WHOLE("gpu_control"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(gpu_host) = {
	.name = "gpu",
	.parts = parts,
	.prepare = prepare,
	.is_runtime = is_runtime,
	.learn = learn,
	.mapped = mapped,
	.event = event,
	.tick = tick,
	.stopping = stopping,
	.sizes = sizes,
};
