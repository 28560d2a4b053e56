// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the shim's events: raises the semaphores of the requested groups of records in each selected process,
 * lowers them before tracing stops, and waits for the records that the shim still has.
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
/*
 * Link numbers of one process, and the common part of all of them. No object of the trace has such a number
 * (LINK_OBJECT).
 */
#define CONTROL_OBJECT(number) (0x10000u | (number))
#define CONTROL_FIRST	       0x8000
#define CONTROL_LAST	       0xffff
#define CHECK_EVERY	       250000000 /* ns */
#define DROPPED_BY_END	       4 /* shim_dropped.reason */

/* A process with the shim. */
struct target {
	u32 pid;
	u64 dev, ino; /* the shim's file that the links belong to; after an exec the process may map another one */
	u32 links; /* the number of its links; 0: it has none */
	bool active; /* it uses CUPTI, and will send more records when it stops */
	bool is_over; /* it has ended; records that it sent may still be unread */
	u64 ended_drained; /* session__drained() when its end was noticed */
};

struct gpu {
	struct target *list;
	u32 n;
	u32 last_links; /* the number assigned last */
	u64 next_check; /* ns: time of the next check for processes that have ended */
	bool dropped; /* the control links were closed */
	bool warned_text, warned_link;
	int slot; /* the number of the slot that this tracer uses in each shim */
	int slot_fd; /* holds the lock that reserves the slot */
};

static struct gpu *gpu_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_gpu_shim));
}

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return library__is(elf, LIBRARY, "sonde_cupti_control_kernels");
}

static struct target *find(const struct gpu *g, u32 pid)
{
	for (u32 i = 0; i < g->n; i++)
		if (g->list[i].pid == pid)
			return &g->list[i];
	return NULL;
}

static struct target *add(struct gpu *g, u32 pid)
{
	if (!array__room(g->list, g->n))
		return NULL;
	g->list[g->n] = (struct target){ .pid = pid };
	return &g->list[g->n++];
}

/*
 * The kernel counts several tracers at one probe site of a shim as one, so each tracer of this machine reserves a
 * slot of its own, by a lock that only root can take, while this process is still root. With more than eight tracers,
 * or with tracers in containers that have a /run of their own, two may share a slot: the second then lacks the names
 * reported before.
 */
static void prepare(struct session *s)
{
	struct gpu *g = gpu_of(s);
	u32 first = (u32)getpid() % SHIM_SLOTS;

	g->slot = (int)first;
	g->slot_fd = lock__open();
	for (u32 i = 0; g->slot_fd >= 0 && i < SHIM_SLOTS; i++)
		if (lock__take(g->slot_fd, LOCK_SLOTS + (first + i) % SHIM_SLOTS)) {
			g->slot = (int)((first + i) % SHIM_SLOTS);
			return;
		}
	if (g->slot_fd >= 0)
		session__warn(s,
			      "family gpu: %u tracers are at work already: kernels' names may be missing in this trace",
			      SHIM_SLOTS);
}

/* Offsets of a shim's probe sites and semaphores in its file; 0 slots: an older shim lacks the group. */
struct gpu_facts {
	struct {
		u64 place, semaphore;
		u64 slots;
	} groups[SHIM_GROUP_COUNT];
};
_Static_assert(sizeof(struct gpu_facts) <= FAMILY_FACTS_MAX, "facts of a file");

/* All slots of a symbol are contiguous in the file. */
static bool has_slots(struct elf *elf, const struct elf_symbol *sym, u64 bytes, u64 *offset)
{
	u64 end;

	return bytes && !elf__offset(elf, sym->addr, offset) && !elf__offset(elf, sym->addr + bytes - 1, &end) &&
	       end - *offset == bytes - 1;
}

/* Fills the facts of a file but lists no sites: those of the shim are probed separately in each process. */
static int sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out, char *why,
		 size_t len)
{
	static const char *const names[] = {
#define NAME(up, low) #low,
		SHIM_GROUPS(NAME)
	};
	struct elf_symbol place, semaphore;
	struct gpu_facts *f = facts;
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
	return 0;
}

/* The requested groups. */
static u32 find_controls(struct session *s, const struct gpu_facts *f, u64 *offsets, u64 *counters)
{
	u32 skip = session__option(s, "gpu", "nodes") ? SHIM_GRAPHS : SHIM_NODES, n = 0;

	/* kernels last: a shim that waits in cuInit for the probes waits for this group */
	for (u32 i = SHIM_GROUP_COUNT; i-- > 0;) {
		u64 slot;

		if (i == skip || !f->groups[i].slots)
			continue;
		slot = (u32)gpu_of(s)->slot % f->groups[i].slots;
		offsets[n] = f->groups[i].place + slot * SHIM_CONTROL_BYTES;
		counters[n++] = f->groups[i].semaphore + slot * SHIM_SEMAPHORE_BYTES;
	}
	return n;
}

static bool has_links(const struct gpu *g, u32 number)
{
	for (u32 i = 0; i < g->n; i++)
		if (g->list[i].links == number)
			return true;
	return false;
}

/* A number that the links of no process have. */
static u32 next_links(struct gpu *g)
{
	u32 n = g->last_links;

	for (u32 tries = CONTROL_FIRST; tries <= CONTROL_LAST; tries++) {
		n = n >= CONTROL_FIRST && n < CONTROL_LAST ? n + 1 : CONTROL_FIRST;
		if (!has_links(g, n))
			break;
	}
	return g->last_links = n;
}

/*
 * Attaches to a process that maps the shim. The shim splits its mapping and each part is reported, so a process that
 * has links already is skipped. A link outlives an exec.
 */
static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	u64 offsets[SHIM_GROUP_COUNT], counters[SHIM_GROUP_COUNT];
	struct gpu *g = gpu_of(s);
	struct target *t = find(g, m->pid);
	u32 n, links = t && t->links ? t->links : next_links(g);
	int err;

	if (g->dropped || (t && t->dev == m->dev && t->ino == m->ino))
		return;
	n = find_controls(s, facts, offsets, counters);
	err = n ? session__link_process(s, "gpu_control", m, offsets, counters, n, CONTROL_OBJECT(links)) : -ENOENT;
	if (!err) {
		t = t ? t : add(g, m->pid);
		if (t) {
			t->dev = m->dev;
			t->ino = m->ino;
			t->links = links;
		}
		return;
	}
	if (err == -ESRCH || g->warned_link)
		return;
	g->warned_link = true;
	session__warn_of(s, session__user(s, m->pid), "process %u: family gpu: its shim can't be switched on: %s",
			 m->pid, n ? strerror(-err) : "it has no probe sites for that");
}

/* Prints a text of the target, without characters that control a terminal. */
static void warn_text(struct session *s, u32 pid, const char *text, u32 len)
{
	char clean[256];
	u32 i;

	if (gpu_of(s)->warned_text)
		return;
	gpu_of(s)->warned_text = true;
	for (i = 0; i < len && i < sizeof(clean) - 1 && text[i]; i++)
		clean[i] = text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
	clean[i] = '\0';
	session__warn_of(s, session__user(s, pid), "process %u: family gpu: %s", pid, clean);
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct gpu_shim *r = (const struct gpu_shim *)e;
	struct gpu *g = gpu_of(s);
	struct target *t;

	if (e->id != ID_gpu_shim || size < sizeof(*r))
		return;
	t = find(g, e->pid);
	if (!t)
		t = add(g, e->pid);
	/* GPU_SHIM_LEFT of another tracer does not concern this one; its own means the end */
	if (t && (r->shim.state != GPU_SHIM_LEFT || g->dropped))
		t->active = r->shim.state == GPU_SHIM_STARTED || r->shim.state == GPU_SHIM_IMPAIRED;
	/* the text says why there are no records, or not all */
	if (size > sizeof(*r) && r->text[0] && r->shim.state != GPU_SHIM_WAITING)
		warn_text(s, e->pid, r->text, size - sizeof(*r));
}

/* True also for a zombie. */
static bool has_ended(struct session *s, u32 pid)
{
	static struct process_image image; /* large */

	int err = session__image(s, pid, &image);

	return err != -ETIMEDOUT && (err || !image.exe[0]);
}

/*
 * Counts the records that CUPTI had not delivered when a process was killed or called _exit. Their number is unknown.
 */
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
	struct gpu *g = gpu_of(s);

	for (u32 i = 0; i < g->n; i++) {
		struct target *t = &g->list[i];

		if (!t->is_over && has_ended(s, t->pid)) {
			t->is_over = true;
			t->ended_drained = session__drained(s);
		}
	}
}

/*
 * The last records of a process, with GPU_SHIM_STOPPED, may have arrived while has_ended() waited for its answer. So
 * only a process that is still active after those were handled has ended without them.
 */
static void remove_ended(struct session *s)
{
	struct gpu *g = gpu_of(s);
	u32 keep = 0;

	for (u32 i = 0; i < g->n; i++) {
		struct target *t = &g->list[i];

		if (t->is_over && session__drained(s) > t->ended_drained) {
			ended(s, t);
			/* the kernel does not close a link when its process ends */
			if (t->links && !g->dropped)
				session__unlink_process(s, CONTROL_OBJECT(t->links));
		} else {
			g->list[keep++] = *t;
		}
	}
	g->n = keep;
}

static void tick(struct session *s, u64 now)
{
	struct gpu *g = gpu_of(s);

	remove_ended(s);
	if (now < g->next_check)
		return;
	g->next_check = now + CHECK_EVERY;
	find_the_gone(s);
}

/* Closes the control links first: the shims then release CUPTI, flush, and report that they are done. */
static bool has_more_records(struct session *s)
{
	struct gpu *g = gpu_of(s);
	bool more = false;

	if (!g->dropped && g->n)
		session__unlink_process(s, CONTROL_OBJECT(0));
	g->dropped = true;
	tick(s, session__now(s));
	for (u32 i = 0; i < g->n; i++)
		more |= g->list[i].active;
	return more;
}

static void sizes(const struct session *s, table_size_fn *fn, void *arg)
{
	const struct gpu *g = gpu_of(s);

	fn(&(struct table_size){ .name = "processes with the shim",
				 .entries = g->n,
				 .bytes = array__bytes(g->list, g->n) },
	   arg);
}

static void end(struct session *s)
{
	struct gpu *g = gpu_of(s);

	free(g->list);
	if (g->slot_fd > 0)
		close(g->slot_fd);
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
	.sites = sites,
	.state = sizeof(struct gpu),
	.end = end,
	.object_mapped = object_mapped,
	.event = event,
	.tick = tick,
	.has_more_records = has_more_records,
	.sizes = sizes,
};
