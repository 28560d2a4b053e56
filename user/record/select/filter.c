// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The filters other than -p: --comm, --cgroup and --scope user. The BPF programs evaluate them
 * (bpf/core/filter.bpf.c). This file passes the patterns to them, and passes processes that are selected later on to
 * the families.
 */
#include "record/select/filter.h"

#include "record/discover/objects.h"
#include "record/parts.h"
#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PASSED_MAX 4096 /* in one generation */
/*
 * A program decides how often it is renamed or moved, so a process is passed on at most once in this time, and passing
 * on all takes at most 1/20 of the time.
 */
#define AGAIN_NS  1000000000ULL
#define ALL_SHARE 20
#define ALL_MAX	  10000000000ULL /* ns */

static int open_comms(struct filter *f, const struct session_args *args, char *err, size_t len)
{
	for (u32 i = 0; i < args->n_comms; i++) {
		int ret = !*args->comms[i]	   ? -EINVAL :
			  f->n_globs == COMM_GLOBS ? -ENOSPC :
						     glob__compile(&f->globs[f->n_globs++], args->comms[i], COMM_STEPS);

		if (ret == -ENOSPC)
			snprintf(err, len, "at most %d names with --comm", COMM_GLOBS);
		else if (ret == -E2BIG)
			snprintf(err, len, "--comm '%s': a process name has at most %d characters (/proc/PID/comm)",
				 args->comms[i], COMM_STEPS);
		else if (ret)
			snprintf(err, len, "--comm names no process");
		if (ret)
			return -EINVAL;
	}
	return 0;
}

/* As in the shell, a '[' without ']' is an ordinary character, which is rarely what the user meant. */
static void warn_of_brackets(struct session *s)
{
	for (u32 i = 0; i < s->args->n_comms; i++) {
		const char *open = strchr(s->args->comms[i], '[');

		if (open && (open == s->args->comms[i] || open[-1] != '\\') && !strchr(open, ']'))
			session__warn(s, "--comm '%s': without a ']' the '[' is an ordinary character",
				      s->args->comms[i]);
	}
}

static int open_cgroups(struct filter *f, const struct session_args *args, char *err, size_t len)
{
	for (u32 i = 0; i < args->n_cgroups; i++) {
		int ret;

		if (f->n_cgroups == FILTER_CGROUPS) {
			snprintf(err, len, "at most %d cgroups with --cgroup", FILTER_CGROUPS);
			return -EINVAL;
		}
		ret = cgroup__find(&f->cgroups[f->n_cgroups++], args->cgroups[i], err, len);
		if (ret)
			return ret;
		if (f->cgroups[i].hierarchy != f->cgroups[0].hierarchy) {
			snprintf(err, len, "--cgroup: %s and %s are in different hierarchies; name cgroups of one",
				 f->cgroups[0].path, f->cgroups[i].path);
			return -EINVAL;
		}
	}
	return 0;
}

int filter__open(struct session *s, char *err, size_t len)
{
	const struct session_args *args = s->args;
	struct filter *f = &s->filter;

	recent__init(&f->passed, sizeof(u32), sizeof(u64), PASSED_MAX);
	warn_of_brackets(s);
	f->need = (args->n_pids ? PROCESS_TREE : 0) | (args->n_comms ? PROCESS_COMM : 0) |
		  (args->n_cgroups ? PROCESS_CGROUP : 0) | (args->one_user ? PROCESS_USER : 0);
	return open_comms(f, args, err, len) ?: open_cgroups(f, args, err, len);
}

void filter__close(struct filter *f)
{
	recent__free(&f->passed);
}

/* Sets what a process needs while it is recorded. */
static int set_needs(struct session *s)
{
	u32 selected = s->filter.need ? PROCESS_SELECTED : 0,
	    need = selected | (s->args->capture ? PROCESS_CAPTURED : 0);
	static u16 kinds[FAMILY_MAX][KINDS_MAX];

	for (u32 i = 0; i < FAMILY_MAX * KINDS_MAX; i++)
		kinds[i / KINDS_MAX][i % KINDS_MAX] = need;
	for (u32 i = 0; i < s->embedded.schema->n_events; i++) {
		const struct schema_event *e = &s->embedded.schema->events[i];

		if (e->role != EVENT_MEASURES && (e->id & 0xff) < KINDS_MAX)
			kinds[FAMILY_INDEX(e->id)][e->id & 0xff] = selected;
	}
	return session__set_variable(s, "record_need", &need, sizeof(need)) ?:
		       session__set_variable(s, "kind_need", kinds, sizeof(kinds));
}

int filter__configure(struct session *s)
{
	const struct filter *f = &s->filter;
	bool on = f->need;

	return set_needs(s)									?:
		       session__set_variable(s, "filter_on", &on, sizeof(on))			?:
		       session__set_variable(s, "filter_need", &f->need, sizeof(u32))		?:
		       session__set_variable(s, "filter_uid", &s->args->user, sizeof(u32))	?:
		       session__set_variable(s, "n_comm_globs", &f->n_globs, sizeof(u32))	?:
		       session__set_variable(s, "n_filter_cgroups", &f->n_cgroups, sizeof(u32)) ?:
		       session__set_variable(s, "filter_hierarchy", &f->cgroups[0].hierarchy, sizeof(u32));
}

static void in_v1_cgroup(u32 pid, void *arg)
{
	process__set(arg, pid, PROCESS_CGROUP);
}

int filter__load(struct session *s)
{
	const struct filter *f = &s->filter;
	int ret = 0;

	for (u32 i = 0; i < f->n_globs && !ret; i++)
		ret = bpf_map_update_elem(bpf_map__fd(s->embedded.skel->maps.comm_globs), &i, &f->globs[i], BPF_ANY);
	for (u32 i = 0; i < f->n_cgroups && !ret; i++)
		ret = bpf_map_update_elem(bpf_map__fd(s->embedded.skel->maps.filter_cgroups), &i, &f->cgroups[i].id,
					  BPF_ANY);
	return ret;
}

int filter__seed(struct session *s)
{
	const struct filter *f = &s->filter;
	int ret = 0;

	if (s->filter.need & (PROCESS_COMM | PROCESS_CGROUP | PROCESS_USER))
		ret = session__run_iter(s, "core_seed", 0);
	for (u32 i = 0; i < f->n_cgroups && f->cgroups[0].hierarchy; i++)
		cgroup__each_process(&f->cgroups[i], in_v1_cgroup, s);
	return ret;
}

void filter__tick(struct session *s)
{
	if (s->filter.need & PROCESS_USER)
		session__run_iter(s, "core_users", 0);
}

static void add_selected(struct filter *f, struct selected m)
{
	for (u32 i = 0; i < f->n_selected && i < SELECTED_MAX; i++) {
		if (f->selected[i].pid != m.pid)
			continue;
		f->selected[i].exec &= m.exec;
		return;
	}
	if (f->n_selected < SELECTED_MAX)
		f->selected[f->n_selected] = m;
	f->n_selected += f->n_selected <= SELECTED_MAX;
}

void filter__note(struct filter *f, const struct event *e, u32 size)
{
	const struct meta_member *m = (const struct meta_member *)e;

	if (size >= sizeof(*m) && m->member)
		add_selected(f, (struct selected){ e->pid, m->exec });
}

/*
 * Processes beyond SELECTED_MAX are passed on if they are selected at this moment; if their selection keeps changing,
 * this is repeated.
 */
static void pass_on_all(struct session *s)
{
	u64 began = session__now(s), took;
	struct filter *f = &s->filter;
	struct selected selected[SELECTED_MAX];

	if (began < f->next_all)
		return;
	memcpy(selected, f->selected, sizeof(selected));
	f->n_selected = 0;
	for (u32 i = 0; i < SELECTED_MAX; i++)
		process__set(s, selected[i].pid, PROCESS_PASSED_ON);
	hosts__process_selected(s, 0);
	objects__scan(s, 0);
	for (u32 i = 0; i < SELECTED_MAX; i++)
		process__clear(s, selected[i].pid, PROCESS_PASSED_ON);
	took = (session__now(s) - began) * ALL_SHARE;
	f->next_all = began + (took < ALL_MAX ? took : ALL_MAX);
}

/* Returns whether the process was passed on recently. If not, notes that it is now. */
static bool is_too_soon(struct filter *f, u32 pid, u64 now)
{
	u64 *last = recent__get(&f->passed, &pid);

	if (last && *last && now - *last < AGAIN_NS)
		return true;
	if (last)
		*last = now;
	return false;
}

/*
 * Passes a process on to the families: its threads and mappings are older than its selection, so no event has reported
 * them. A program that has just started maps its files after this. A process that is not selected any more by now is
 * passed on, too, because its events before that are recorded.
 */
static void pass_on(struct session *s, const struct selected *m)
{
	u32 pid = m->pid;

	process__set(s, pid, PROCESS_PASSED_ON);
	hosts__process_selected(s, pid);
	if (!m->exec || !session__selects(s, pid))
		objects__scan(s, pid);
	process__clear(s, pid, PROCESS_PASSED_ON);
}

void filter__follow(struct session *s)
{
	struct filter *f = &s->filter;
	struct selected selected[SELECTED_MAX];
	u64 now = session__now(s);
	u32 n = f->n_selected;

	if (n > SELECTED_MAX) {
		pass_on_all(s);
		return;
	}
	/* more may be selected meanwhile */
	memcpy(selected, f->selected, n * sizeof(*selected));
	f->n_selected = 0;
	for (u32 i = 0; i < n; i++) {
		if (is_too_soon(f, selected[i].pid, now)) {
			add_selected(f, selected[i]);
			continue;
		}
		pass_on(s, &selected[i]);
	}
}
