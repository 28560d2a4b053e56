// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the GIL family: finds the probe sites, and attaches sched_waking while threads wait. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/steering.h"
#include "gil.h"
#include "gil_find.h"
#include "gil_slices.h"
#include "record/family.h"
#include "site/place.h"

#define WAKING	    "gil_waking"
#define WAKING_IDLE 10000000000ULL /* ns without a wait after which sched_waking is detached again */
/*
 * ns of a recorded wait or hold, with its two traps, for --cost-limit. That of wake-ups is in sched's figure for a
 * record.
 */
#define WAIT_NS		5000
#define STACKED_WAIT_NS 12000
#define HOLD_NS		2000
#define TRAPS_NS	2000 /* the part of each that is its traps */

#define HOLDERS	     "gil_find_holders"
#define RANGE_MAX    (1ULL << 32) /* bytes of a runtime; no real one is nearly as large */
#define SOUGHT_MAX   16 /* searches at once */
#define SOUGHT_EVERY 100000000ULL /* ns */
#define SOUGHT_RARER 5 /* tries, each after twice the interval of the one before; after them one every 3.2 s */

/* A thread state that holds a GIL and whose thread is unknown. */
struct sought {
	u64 state;
	u32 pid;
	u32 tries;
	u64 next; /* time of the next try, ns */
};

/* What the session knows of the GIL. */
struct gil {
	bool waking; /* sched_waking is attached */
	bool waking_failed;
	u64 last_wait; /* ns */
	bool libc_probed; /* a runtime needs the fallback: waits of libc are probed */
	bool full_found; /* in some runtime, takes and drops are probed */
	struct sought sought[SOUGHT_MAX];
	u32 n_sought; /* all that were ever added; the last SOUGHT_MAX are stored */
	bool seek;
	u64 last_seek; /* ns */
	struct gil_slices slices;
};

/* What the worker stores for a CPython file. */
struct gil_facts {
	u32 needs_libc; /* 1: its waits can only be recognized in the C library */
	u32 full; /* 1: its takes and drops are probed */
	u64 runtime, runtime_size; /* _PyRuntime, as an address in the file; size 0: unknown */
};

static struct gil *gil_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_gil_wait));
}

/* The reason why the runtime's own call can't be probed; NULL: it can be. */
static const char *why_not_in_runtime(struct elf *elf, struct gil_wait_site *places, u32 *n)
{
	*n = 0;
	if (session__test_switch("no-gil-pattern"))
		return "the pattern is hidden by a test";
	if (place__shadow_stack(elf))
		return "it may run with a shadow stack";
	*n = gil_find__waits(elf, places, GIL_SITES_MAX);
	return *n ? NULL : "its wait for the GIL was not recognized";
}

static bool is_libc(struct elf *elf)
{
	/*
	 * musl has the first, but there libc is also the loader, and no Python with musl is known that needs the
	 * fallback
	 */
	return elf__exports(elf, "pthread_cond_timedwait") && elf__exports(elf, "__libc_start_main");
}

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return gil_find__is_cpython(elf) || (hint && is_libc(elf));
}

static int libc_sites(struct elf *elf, struct site_list *out, char *why, size_t len)
{
	struct gil_libc_site place;
	const char *reason;
	u64 offset;
	u32 i;
	int err;

	if (gil_find__libc(elf, &place, &reason)) {
		snprintf(
			why, len,
			"it can't be probed, so the GIL of runtimes that wait for it through this libc is not traced: %s",
			reason);
		return 0;
	}
	err = elf__offset(elf, place.enter, &offset);
	err = err ?: site_list__add(out, offset, "gil_libc_enter");
	for (i = 0; !err && i < place.n; i++) {
		err = elf__offset(elf, place.leave[i], &offset);
		err = err ?: site_list__add(out, offset, "gil_libc_leave");
	}
	return err;
}

static int add_sites(struct elf *elf, const u64 *addrs, u32 n, const char *program, struct site_list *out)
{
	u64 offset;
	int err = 0;
	u32 i;

	for (i = 0; !err && i < n; i++) {
		err = elf__offset(elf, addrs[i], &offset);
		err = err ?: site_list__add(out, offset, program);
	}
	return err;
}

static int runtime_sites(struct elf *elf, const struct gil_wait_site *places, u32 n, struct site_list *out)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < n; i++) {
		err = add_sites(elf, &places[i].call, 1, "gil_wait_call", out);
		err = err ?: add_sites(elf, &places[i].jump, 1, "gil_wait_jump", out);
	}
	return err;
}

/*
 * --gil=full: the sites at which the GIL is taken and dropped. Without both there are no holds, but waits are recorded
 * anyway.
 */
static int full_sites(struct elf *elf, struct gil_facts *f, struct site_list *out, char *why, size_t len)
{
	struct gil_full_sites *places = malloc(sizeof(*places));
	u32 i;
	int err;

	if (!places)
		return -ENOMEM;
	gil_find__full(elf, places);
	if (!places->n_takes || !places->n_drops) {
		snprintf(why, len, "where the GIL is taken and dropped was not recognized: there are no hold times");
		free(places);
		return 0;
	}
	if (places->unknown)
		snprintf(why, len,
			 "%u places where the GIL may be taken or dropped were not recognized: some holds are missing",
			 places->unknown);
	f->full = 1;
	err = add_sites(elf, places->takes, places->n_takes, "gil_take", out);
	err = err ?: add_sites(elf, places->drops, places->n_drops, "gil_give", out);
	for (i = 0; !err && i < places->n_switches; i++) {
		err = add_sites(elf, &places->switches[i].call, 1, "gil_switch_call", out);
		err = err ?: add_sites(elf, &places->switches[i].jump, 1, "gil_switch_jump", out);
	}
	free(places);
	return err;
}

/* The waits can't be recognized in the runtime's own code, only in the C library. */
static int leave_to_libc(struct elf *elf, struct gil_facts *f)
{
	struct elf_symbol sym;

	f->needs_libc = 1;
	if (!elf__find_symbol(elf, "_PyRuntime", &sym)) {
		f->runtime = sym.addr;
		f->runtime_size = sym.size;
	}
	return SITES_HINT;
}

static int sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out, char *why,
		 size_t len)
{
	struct gil_wait_site places[GIL_SITES_MAX];
	bool full = s && session__option(s, "gil", "full");
	const char *reason;
	u32 n;
	int err;

	if (!gil_find__is_cpython(elf))
		return libc_sites(elf, out, why, len);
	if (gil_find__is_free_threaded(elf)) {
		snprintf(why, len, "the GIL is not traced: this is a free-threaded CPython, which has none by default");
		return SITES_NONE;
	}
	reason = why_not_in_runtime(elf, places, &n);
	if (reason) {
		if (full)
			snprintf(why, len, "no hold times: %s", reason);
		return leave_to_libc(elf, facts);
	}
	err = runtime_sites(elf, places, n, out);
	return err || !full ? err : full_sites(elf, facts, out, why, len);
}

static bool describe(struct elf *elf, const char *path, char *what, size_t what_len, char *how, size_t how_len)
{
	struct gil_wait_site places[GIL_SITES_MAX];
	const char *why;
	u32 n;

	if (!gil_find__is_cpython(elf))
		return false;
	gil_find__name(elf, path, what, what_len);
	if (gil_find__is_free_threaded(elf)) {
		snprintf(how, how_len, "not: free-threaded, it has no GIL by default");
		return true;
	}
	why = why_not_in_runtime(elf, places, &n);
	if (why)
		snprintf(how, how_len, "its GIL through libc: %s", why);
	else
		snprintf(how, how_len, "its GIL in the runtime, %u place%s", n, n == 1 ? "" : "s");
	return true;
}

static bool check_range(const void *key, const void *value)
{
	const struct gil_range *r = value;

	return steering__is_address(r->text) && steering__is_address(r->data) && r->text_size <= RANGE_MAX &&
	       r->data_size <= RANGE_MAX;
}

STEERING(ranges) = {
	.map = "gil_ranges",
	.key_size = sizeof(u32),
	.value_size = sizeof(struct gil_range),
	.check = check_range,
};

/* The thread state is on the process's heap; the program reads only a number from it, and whether it holds the GIL. */
static bool check_state(const void *key, const void *value)
{
	u64 state;

	memcpy(&state, value, sizeof(state));
	return steering__is_address(state);
}

STEERING(sought) = {
	.map = "gil_sought",
	.key_size = sizeof(u32),
	.value_size = sizeof(u64),
	.check = check_state,
};

static void object_examined(struct session *s, const void *facts)
{
	const struct gil_facts *f = facts;

	gil_of(s)->full_found |= f->full == 1;
	gil_of(s)->libc_probed |= f->needs_libc == 1;
}

/* For the fallback the programs have to know which waits of a process are for a GIL. */
static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	struct gil_range range = { .text = m->start, .text_size = m->end - m->start };
	const struct gil_facts *f = facts;
	u64 bias;

	if (!gil_of(s)->libc_probed || !f->needs_libc)
		return;
	if (f->runtime_size && !mapping__bias(file, m, &bias)) {
		range.data = f->runtime + bias;
		range.data_size = f->runtime_size;
	}
	session__set_process(s, "gil_ranges", m->pid, &range);
}

/* Notes that a wait ended whose GIL has an unknown holder. */
static void seek_holder(struct gil *g, const struct gil_wait *w)
{
	u32 pid = w->span.event.pid, i;
	struct sought *k;

	for (i = 0; i < SOUGHT_MAX; i++) {
		k = &g->sought[i];
		if (k->pid != pid || k->state != w->last_holder)
			continue;
		g->seek = true;
		return;
	}
	g->sought[g->n_sought++ % SOUGHT_MAX] = (struct sought){ .state = w->last_holder, .pid = pid };
	g->seek = true;
}

/* Runs the iterator for the thread states that are searched for, one of each process at a time. */
static void find_holders(struct session *s, u64 now)
{
	struct gil *g = gil_of(s);
	u32 i, n = 0;

	for (i = 0; i < SOUGHT_MAX; i++) {
		struct sought *k = &g->sought[i];

		if (!k->pid || now < k->next || session__map_set(s, "gil_sought", &k->pid, &k->state, BPF_NOEXIST))
			continue;
		k->next = now + (SOUGHT_EVERY << k->tries);
		k->tries += k->tries < SOUGHT_RARER;
		n++;
	}
	if (n)
		session__run_iter(s, HOLDERS, 0);
	for (i = 0; i < SOUGHT_MAX && n; i++)
		if (g->sought[i].pid)
			session__map_set(s, "gil_sought", &g->sought[i].pid, NULL, 0);
}

static void watch(struct session *s, bool on)
{
	struct gil *g = gil_of(s);

	/* drops that are probed are more exact than wake-ups */
	if (on && !g->waking && !g->waking_failed && !(g->full_found && !g->libc_probed)) {
		g->waking = !session__attach(s, WAKING);
		g->waking_failed = !g->waking;
	}
	if (!on && g->waking) {
		session__detach(s, WAKING);
		g->waking = false;
	}
}

/* Adds what a recorded wait or hold costs to that of --cost-limit. An open one was written by an iterator. */
static void add_cost(struct session *s, const struct event *e, u32 size)
{
	const struct gil_wait *w = (const struct gil_wait *)e;
	u64 ns = HOLD_NS;

	if (e->flags & EVENT_OPEN || (e->id != ID_gil_wait && e->id != ID_gil_hold))
		return;
	if (e->id == ID_gil_wait)
		ns = size >= sizeof(*w) && (w->stack || w->holder_stack) ? STACKED_WAIT_NS : WAIT_NS;
	/* where the probes stay attached in pauses, these do not save the traps */
	session__add_probing(s, 0, session__detaches_slowly(s) ? ns - TRAPS_NS : ns);
}

static bool cut(struct session *s, struct event *e, u32 size)
{
	return gil_slices__cut(&gil_of(s)->slices, e, size);
}

static void event(struct session *s, const struct event *e, u32 size)
{
	const struct gil_wait *w = (const struct gil_wait *)e;
	struct gil *g = gil_of(s);

	gil_slices__count(&g->slices, e);
	add_cost(s, e, size);
	if (e->id != ID_gil_wait || size < sizeof(*w))
		return;
	if (w->last_holder && !w->holder)
		seek_holder(g, w);
	if (e->time > g->last_wait)
		g->last_wait = e->time;
	if (!g->slices.paused)
		watch(s, true);
}

static void set_slice(struct session *s, bool measures)
{
	struct gil *g = gil_of(s);
	bool was_paused = g->slices.paused;

	gil_slices__set(&g->slices, s, measures, !g->waking && gil_slices__is_idle(&g->slices));
	if (was_paused != (g->slices.paused != 0))
		watch(s, was_paused);
}

static void tick(struct session *s, u64 now)
{
	struct gil *g = gil_of(s);
	enum gil_slices_change change = gil_slices__tick(&g->slices, s, now);

	if (change)
		watch(s, change == GIL_SLICES_RESUMED);
	if (g->seek && now >= g->last_seek + SOUGHT_EVERY) {
		g->seek = false;
		g->last_seek = now;
		find_holders(s, now);
	}
	if (!g->waking || now < g->last_wait + WAKING_IDLE)
		return;
	watch(s, false);
	gil_slices__watched(&g->slices, s, false);
}

static bool has_more_records(struct session *s)
{
	gil_slices__stop(&gil_of(s)->slices, s);
	return false;
}

static void on_gil(struct session *s, u32 pid, u64 gil, u64 interpreter)
{
	struct gil_owner r = {
		.event = session__event(s, ID_gil_owner),
		.gil = gil,
		.interpreter = interpreter,
	};

	r.event.pid = r.event.tid = pid;
	session__emit(s, &r, sizeof(r));
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("gil_wait_*"),
	FAMILY_WHOLE("gil_switch_*"),
	FAMILY_PART("gil_waking", "when the GIL was dropped"),
	FAMILY_PART("gil_libc_*", "waits for the GIL of CPythons that wait through libc"),
	FAMILY_PART("gil_thread_exit", "waits that ended with their thread"),
	FAMILY_PART("gil_fork", "waits in processes that fork"),
	FAMILY_PART("gil_find_holders", "who held the GIL when the recording began"),
	FAMILY_PART("gil_open_waits", "waits still open when the recording stopped"),
	FAMILY_PART("gil_take", "holds of the GIL (--gil=full)"),
	FAMILY_PART("gil_give", "holds of the GIL (--gil=full)"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(gil_host) = {
	.name = "gil",
	.parts = parts,
	.python = true,
	.is_runtime = is_runtime,
	.sites = sites,
	.describe = describe,
	.object_examined = object_examined,
	.state = sizeof(struct gil),
	.object_mapped = object_mapped,
	.cut = cut,
	.event = event,
	.tick = tick,
	.has_more_records = has_more_records,
	.python_gil = on_gil,
	.detaches = true,
	.set_slice = set_slice,
};
