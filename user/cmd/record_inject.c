// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `record --inject` loads the shim into the selected processes that run already, before the recording begins. */
#include "cmd/cmd.h"
#include "cmd/inject_budget.h"
#include "cmd/record.h"
#include "cmd/shim.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/check.h"
#include "inject/inject.h"
#include "process/procs.h"
#include "sandbox/bounded.h"
#include "record/select/cgroup.h"
#include "util/array.h"
#include "util/file.h"
#include "util/timing.h"

#define DEPTH_MAX  64 /* ancestors that are followed */
#define LISTED_MAX 16 /* processes that one message names */

struct pids {
	u32 *list;
	u32 n;
};

static void add(u32 pid, void *arg)
{
	struct pids *p = arg;

	if (!array__push(p->list, p->n, pid))
		return;
}

static bool contains(const u32 *list, u32 n, u32 pid)
{
	for (u32 i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static bool in_tree(const struct record_args *a, u32 pid)
{
	for (u32 i = 0; pid && i < DEPTH_MAX; i++, pid = (u32)procs__status(pid, "PPid: %llu"))
		if (contains(a->pids.list, a->pids.n, pid))
			return true;
	return false;
}

static bool has_name(const struct record_args *a, u32 pid)
{
	char path[64], name[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file__first_line(path, name, sizeof(name));
	for (u32 i = 0; i < a->session.n_comms; i++)
		if (!fnmatch(a->comms[i], name, 0))
			return true;
	return false;
}

struct runtimes {
	bool cuda, python, torch;
};

static void note_runtime(const struct mapping *m, void *arg)
{
	const char *slash = strrchr(m->path, '/');
	struct runtimes *r = arg;

	if (!slash)
		return;
	r->cuda |= !strncmp(slash, "/libcuda.so", 11) || !strncmp(slash, "/libcudart.so", 13);
	r->torch |= !strncmp(slash, "/libtorch_cpu.so", 16);
	r->python |= !strncmp(slash, "/python3", 8) || !strncmp(slash, "/libpython3", 11);
}

static bool has_runtime(const struct record_args *a, u32 pid)
{
	struct runtimes r = {};

	procs__each_mapping_of(pid, note_runtime, &r);
	return r.cuda || r.torch || (r.python && a->functions.text);
}

/* Selects processes as the recording does: a process must pass each kind of filter that is given. */
static bool selected(const struct record_args *a, const struct pids *in_cgroups, u32 pid)
{
	if (a->session.n_pids && !in_tree(a, pid))
		return false;
	if (a->session.n_comms && !has_name(a, pid))
		return false;
	if (a->session.n_cgroups && !contains(in_cgroups->list, in_cgroups->n, pid))
		return false;
	/* Processes of -p may load CUDA later; others are selected only if they have it. */
	return contains(a->pids.list, a->pids.n, pid) || has_runtime(a, pid);
}

static void find_processes(const struct record_args *a, struct pids *out)
{
	static struct cgroup_ref place; /* too large for the stack */
	struct pids in_cgroups = {};
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char err[512];

	for (u32 i = 0; i < a->session.n_cgroups; i++)
		if (!cgroup__find(&place, a->cgroups[i], err, sizeof(err)))
			cgroup__each_process(&place, add, &in_cgroups);
	while (dir && (d = readdir(dir))) {
		u32 pid = (u32)strtoul(d->d_name, NULL, 10);

		if (pid && pid != (u32)getpid() && pid != (u32)a->launch.pid && selected(a, &in_cgroups, pid))
			add(pid, out);
	}
	if (dir)
		closedir(dir);
	free(in_cgroups.list);
}

/* Processes that were skipped because a budget was spent: that of a user, or that of all users. */
struct left_out {
	u32 uid;
	bool of_all;
	struct pids pids;
};

struct left_out_list {
	struct left_out *list;
	u32 n;
};

static void leave_out(struct left_out_list *l, u32 uid, bool of_all, u32 pid)
{
	struct left_out *found = NULL;

	for (u32 i = 0; i < l->n && !found; i++)
		if (of_all ? l->list[i].of_all : !l->list[i].of_all && l->list[i].uid == uid)
			found = &l->list[i];
	if (!found && array__push(l->list, l->n, (struct left_out){ .uid = uid, .of_all = of_all }))
		found = &l->list[l->n - 1];
	if (found)
		add(pid, &found->pids);
}

static void print_left_out(struct left_out_list *l)
{
	char names[LISTED_MAX * 12 + 32], why[128];

	for (u32 i = 0; i < l->n; i++) {
		struct left_out *o = &l->list[i];
		size_t at = 0;

		for (u32 k = 0; k < o->pids.n && k < LISTED_MAX; k++)
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%u", k ? ", " : "", o->pids.list[k]);
		if (o->pids.n > LISTED_MAX)
			snprintf(names + at, sizeof(names) - at, " and %u more", o->pids.n - LISTED_MAX);
		if (o->of_all)
			snprintf(why, sizeof(why), "slow processes took %d s in all", INJECT_BUDGET_ALL_S);
		else
			snprintf(why, sizeof(why), "%d others of user %u failed slowly, or took %d s together",
				 INJECT_BUDGET_FAILURES, o->uid, INJECT_BUDGET_USER_S);
		cmd__error(
			"--inject: left out, and without device times: process%s %s, since %s; `sonde inject PID` tries one, "
			"then record it",
			o->pids.n == 1 ? "" : "es", names, why);
		free(o->pids.list);
	}
	free(l->list);
}

static void print_waiting(u32 pid)
{
	static bool printed;

	if (!printed)
		cmd__error("--inject: waiting for process %u, whose dynamic loader is busy or slow", pid);
	printed = true;
}

/* What a process without the library lacks */
static const char *records(const struct record_args *a)
{
	return shim__records(record_options__shim_needs(a));
}

/* Loads the shim; returns false after printing why it could not. */
static bool inject(const struct record_args *a, u32 pid, u32 uid, const char *shim, struct inject_budget *budget)
{
	const struct inject_options options = {
		.remote_files = a->session.remote_files,
		.functions = a->functions.text,
		.impatient = inject_budget__turn(budget, uid) == INJECT_TURN_SHORT,
		.waiting = print_waiting,
		.stopped = record__is_stopped,
	};
	struct inject_result r;
	u64 began = timing__now();
	bool failed;

	inject__process(pid, shim, &options, &r);
	failed = r.outcome == INJECT_REFUSED || r.outcome == INJECT_FAILED;
	inject_budget__add(budget, uid, timing__now() - began, failed);
	if (failed)
		cmd__error("--inject: process %u will have no %s: %s", pid, records(a), r.why);
	return !failed;
}

/* Loads the shim into all processes that the scope allows, until the budgets are spent. */
static void inject_all(struct record_args *a, const struct pids *pids, const char *shim)
{
	struct inject_budget budget = {};
	struct left_out_list late = {};
	u32 outside = 0;
	char why[512];

	for (u32 i = 0; i < pids->n && !record__is_stopped(); i++) {
		u32 pid = pids->list[i];
		/* This is the real user: /proc/PID belongs to root if the process is not dumpable. */
		u32 uid = (u32)procs__status(pid, "Uid: %llu");
		enum inject_turn turn = inject_budget__turn(&budget, uid);

		if (!scope__allows(&a->scope, pid, why, sizeof(why))) {
			outside++;
			continue;
		}
		if (turn == INJECT_TURN_USER_SPENT || turn == INJECT_TURN_ALL_SPENT) {
			leave_out(&late, uid, turn == INJECT_TURN_ALL_SPENT, pid);
			a->not_injected++;
		} else if (!inject(a, pid, uid, shim, &budget)) {
			a->not_injected++;
		}
	}
	print_left_out(&late);
	inject_budget__free(&budget);
	if (outside)
		cmd__error("--inject: %s (%u in all will have no device times)", why, outside);
}

void record_inject__run(struct record_args *a)
{
	struct pids pids = {};
	char shim[PATH_MAX];

	if (!a->inject)
		return;
	if (shim__find(shim, sizeof(shim))) {
		cmd__error("libsonde-cupti.so is neither beside sonde nor in ../lib/sonde: there will be no %s",
			   records(a));
		a->not_injected++;
		return;
	}
	find_processes(a, &pids);
	if (!pids.n && (a->session.n_comms || a->session.n_cgroups || a->session.n_pids > !!a->launch.pid))
		cmd__error("--inject: no process that the filters name maps libcuda, libcudart or libtorch");
	inject_all(a, &pids, shim);
	bounded__forget();
	free(pids.list);
}
