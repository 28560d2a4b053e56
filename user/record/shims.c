// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Raises the semaphores of the requested groups of records in each selected process with the shim, lowers them before
 * tracing stops, and waits for the records that the shim still has.
 */
#include "record/shims.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/library.h"
#include "core/shim.h"
#include "core/stack.h"
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/family.h"
#include "record/parts.h"
#include "record/shim_batches.h"
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
#define AWAIT_NS	       150000000
#define AWAIT_LOOK_US	       500

bool shim_user__is_runtime(struct elf *elf, const char *path, bool hint)
{
	return library__is(elf, LIBRARY, "sonde_cupti_control_kernels");
}

static struct shim_target *find(const struct shims *g, const struct shim_user *user, u32 pid)
{
	for (u32 i = 0; i < g->n; i++)
		if (g->list[i].pid == pid && g->list[i].user == user)
			return &g->list[i];
	return NULL;
}

static struct shim_target *add(struct shims *g, const struct shim_user *user, u32 pid)
{
	if (!array__room(g->list, g->n))
		return NULL;
	g->list[g->n] = (struct shim_target){ .user = user, .pid = pid };
	return &g->list[g->n++];
}

/*
 * The kernel counts several tracers at one probe site of a shim as one, so each tracer of this machine reserves a
 * slot of its own, by a lock that only root can take, while this process is still root. With more than eight tracers,
 * or with tracers in containers that have a /run of their own, two may share a slot: the second then lacks the names
 * reported before.
 */
void session__prepare_shims(struct session *s)
{
	struct shims *g = &s->shims;
	u32 first = (u32)getpid() % SHIM_SLOTS;

	if (g->has_slot)
		return;
	g->has_slot = true;
	g->slot = (int)first;
	g->slot_fd = lock__open();
	for (u32 i = 0; g->slot_fd >= 0 && i < SHIM_SLOTS; i++)
		if (lock__take(g->slot_fd, LOCK_SLOTS + (first + i) % SHIM_SLOTS)) {
			g->slot = (int)((first + i) % SHIM_SLOTS);
			return;
		}
	if (g->slot_fd >= 0)
		session__warn(
			s,
			"%u tracers use the library in targets already: names of kernels or ranges may be missing in this trace",
			SHIM_SLOTS);
}

/* Offsets of a shim's probe sites and semaphores in its file; 0 slots: an older shim lacks the group. */
struct shim_facts {
	struct {
		u32 place, semaphore;
		u32 slots;
	} groups[SHIM_GROUP_COUNT];
};
_Static_assert(sizeof(struct shim_facts) <= FAMILY_FACTS_MAX, "facts of a file");

bool shim_user__has_sites(const void *facts)
{
	const struct shim_facts *f = facts;
	bool has = false;

	for (u32 i = 0; i < SHIM_GROUP_COUNT; i++)
		has |= f->groups[i].slots > 0;
	return has;
}

/* All slots of a symbol are contiguous in the file. */
static bool has_slots(struct elf *elf, const struct elf_symbol *sym, u64 bytes, u32 *offset)
{
	u64 begin, end;

	if (!bytes || elf__offset(elf, sym->addr, &begin) || elf__offset(elf, sym->addr + bytes - 1, &end) ||
	    end - begin != bytes - 1 || end > UINT32_MAX)
		return false;
	*offset = (u32)begin;
	return true;
}

int shim_user__sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out,
		     char *why, size_t len)
{
	static const char *const names[] = {
#define NAME(up, low) #low,
		SHIM_GROUPS(NAME)
	};
	struct elf_symbol place, semaphore;
	struct shim_facts *f = facts;
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
			f->groups[i].slots = (u32)slots;
	}
	return 0;
}

/* The requested groups. */
static u32 find_controls(struct session *s, const struct shim_facts *f, u32 groups, u64 *offsets, u64 *counters)
{
	u32 n = 0;

	/* kernels last: a shim that waits in cuInit for the probes waits for this group */
	for (u32 i = SHIM_GROUP_COUNT; i-- > 0;) {
		u64 slot;

		if (!(groups >> i & 1) || !f->groups[i].slots)
			continue;
		slot = (u32)s->shims.slot % f->groups[i].slots;
		offsets[n] = f->groups[i].place + slot * SHIM_CONTROL_BYTES;
		counters[n++] = f->groups[i].semaphore + slot * SHIM_SEMAPHORE_BYTES;
	}
	return n;
}

static bool has_links(const struct shims *g, u32 number)
{
	for (u32 i = 0; i < g->n; i++)
		if (g->list[i].links == number)
			return true;
	return false;
}

/* A number that the links of no process have. */
static u32 next_links(struct shims *g)
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
 * The shim splits its mapping and each part is reported, so a process that has links already is skipped. A link
 * outlives an exec.
 */
void session__request_records(struct session *s, const struct shim_user *user, const void *facts,
			      const struct mapping *m, u32 groups)
{
	u64 offsets[SHIM_GROUP_COUNT], counters[SHIM_GROUP_COUNT];
	struct shims *g = &s->shims;
	struct shim_target *t = find(g, user, m->pid);
	u32 n, links = t && t->links ? t->links : next_links(g);
	int err;

	if (g->dropped || (t && t->dev == m->dev && t->ino == m->ino))
		return;
	n = find_controls(s, facts, groups, offsets, counters);
	err = n ? session__link_process(s, user->control, m, offsets, counters, n, CONTROL_OBJECT(links)) : -ENOENT;
	if (!err) {
		t = t ? t : add(g, user, m->pid);
		if (t) {
			t->dev = m->dev;
			t->ino = m->ino;
			t->links = links;
			t->is_early = !s->time.started;
			t->has_answered = false;
		}
		return;
	}
	if (err == -ESRCH || g->warned_link)
		return;
	g->warned_link = true;
	session__warn_of(s, session__user(s, m->pid), "process %u: family %s: its shim can't be switched on: %s",
			 m->pid, user->family, n ? strerror(-err) : "it has no probe sites for that");
}

void shim_user__copy_text(char *to, size_t len, const char *text, u32 size)
{
	size_t n = 0;

	for (; n < size && n + 1 < len && text[n]; n++)
		to[n] = (unsigned char)text[n] < ' ' || text[n] == 0x7f ? ' ' : text[n];
	to[n] = '\0';
}

static void warn_text(struct session *s, const struct shim_user *user, u32 pid, const char *text, u32 size)
{
	char clean[256];

	if (s->shims.warned_text)
		return;
	s->shims.warned_text = true;
	shim_user__copy_text(clean, sizeof(clean), text, size);
	session__warn_of(s, session__user(s, pid), "process %u: family %s: %s", pid, user->family, clean);
}

struct state_event {
	struct event event;
	struct shim_state shim;
	char text[];
};

/* The GPU's work before that is counted by its launches. */
static void note_gap(struct session *s, const struct shim_target *t, const struct event *e)
{
	struct mapping m = { .dev = t->dev, .ino = t->ino };
	const struct object *o = objects__find(s->objects, &m);

	if (t->is_early && !t->has_answered && t->user->dropped && s->time.started && e->time > s->time.started)
		losses__add_of(s, t->pid, EVENT_FAMILY(t->user->state), LOSS_ATTACH_GAP, 1, s->time.started, e->time,
			       o ? o->id : 0);
}

static void take_event(void *session, void *event, u32 size)
{
	struct session *s = session;

	if (host__cut(s, event, size))
		drain__append(s, event, size);
}

static void take_batch(struct session *s, const struct shim_user *user, const struct event *e, u32 size)
{
	u16 family = RAW_FAMILY(e->id);
	u32 lost = shim_batch__each((const struct shim_raw *)e, size, user->forms, user->n_forms, (u8)family,
				    take_event, s);

	if (lost)
		losses__add(s, family, LOSS_READ, lost, e->time, e->time, 0);
}

void session__note_shim(struct session *s, const struct shim_user *user, const struct event *e, u32 size)
{
	const struct state_event *r = (const struct state_event *)e;
	struct shims *g = &s->shims;
	struct shim_target *t;

	if (e->id == RAW_SECOND_OF(RAW_FAMILY(e->id)) && size >= sizeof(struct shim_raw)) {
		take_batch(s, user, e, size);
		return;
	}
	if (e->id != user->state || size < sizeof(*r))
		return;
	t = find(g, user, e->pid);
	if (!t)
		t = add(g, user, e->pid);
	if (t && r->shim.state == GPU_SHIM_STARTED)
		note_gap(s, t, e);
	if (t)
		t->has_answered = true;
	/* GPU_SHIM_LEFT of another tracer does not concern this one; its own means the end */
	if (t && (r->shim.state != GPU_SHIM_LEFT || g->dropped))
		t->active = r->shim.state == GPU_SHIM_STARTED || r->shim.state == GPU_SHIM_IMPAIRED;
	/* the text says why there are no records, or not all */
	if (size > sizeof(*r) && r->text[0] && r->shim.state != GPU_SHIM_WAITING)
		warn_text(s, user, e->pid, r->text, size - (u32)sizeof(*r));
}

/* True also for a zombie. */
static bool has_ended(struct session *s, u32 pid)
{
	static struct process_image image; /* large */

	int err = session__image(s, pid, &image);

	return err != -ETIMEDOUT && (err || !image.exe[0]);
}

static void find_the_gone(struct session *s)
{
	struct shims *g = &s->shims;

	for (u32 i = 0; i < g->n; i++) {
		struct shim_target *t = &g->list[i];

		if (!t->is_over && has_ended(s, t->pid)) {
			t->is_over = true;
			t->ended_drained = session__drained(s);
		}
	}
}

static void note_ended(struct session *s, const struct shim_target *t)
{
	const struct shim_user *u = t->user;
	struct {
		struct event event;
		struct shim_lost lost;
	} e = {
		.event = { .time = session__now(s), .pid = t->pid, .tid = t->pid, .id = u->dropped },
		.lost.reason = u->ended_reason,
	};

	if (u->ended)
		u->ended(s, t->pid);
	else
		session__emit(s, &e, sizeof(e));
}

/*
 * The last records of a process, with GPU_SHIM_STOPPED, may have arrived while has_ended() waited for its answer. So
 * only a process that is still active after those were handled has ended without them.
 */
static void remove_ended(struct session *s)
{
	struct shims *g = &s->shims;
	u32 keep = 0;

	for (u32 i = 0; i < g->n; i++) {
		struct shim_target *t = &g->list[i];

		if (t->is_over && session__drained(s) > t->ended_drained) {
			if (t->active)
				note_ended(s, t);
			/* the kernel does not close a link when its process ends */
			if (t->links && !g->dropped)
				session__unlink_process(s, CONTROL_OBJECT(t->links));
		} else {
			g->list[keep++] = *t;
		}
	}
	g->n = keep;
}

void shim_user__tick(struct session *s, u64 now)
{
	struct shims *g = &s->shims;

	remove_ended(s);
	if (now < g->next_check)
		return;
	g->next_check = now + CHECK_EVERY;
	find_the_gone(s);
}

static bool is_any_silent(const struct shims *g)
{
	for (u32 i = 0; i < g->n; i++)
		if (g->list[i].links && g->list[i].user->state && !g->list[i].has_answered)
			return true;
	return false;
}

void shims__await(struct session *s)
{
	u64 end = session__now(s) + AWAIT_NS;

	while (is_any_silent(&s->shims) && session__now(s) < end && !session__is_stopping(s)) {
		drain__rings(s);
		usleep(AWAIT_LOOK_US);
	}
}

/* Closes the control links first: the shims then stop, flush, and report that they are done. */
bool shim_user__has_more(struct session *s)
{
	struct shims *g = &s->shims;
	bool more = false;

	if (!g->dropped && g->n)
		session__unlink_process(s, CONTROL_OBJECT(0));
	g->dropped = true;
	shim_user__tick(s, session__now(s));
	for (u32 i = 0; i < g->n; i++)
		more |= g->list[i].active;
	return more;
}

void shim_user__sizes(const struct session *s, table_size_fn *fn, void *arg)
{
	const struct shims *g = &s->shims;

	fn(&(struct table_size){ .name = "processes with the shim",
				 .entries = g->n,
				 .bytes = array__bytes(g->list, g->n) },
	   arg);
}

void shims__free(struct shims *s)
{
	free(s->list);
	if (s->slot_fd > 0)
		close(s->slot_fd);
}
