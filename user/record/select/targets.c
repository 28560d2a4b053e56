// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes that -p names, their descendants, and the flags of each process in BPF. */
#include "record/select/targets.h"

#include "attach/steering.h"
#include "process/procs.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

u32 process__get(const struct session *s, u32 pid)
{
	u32 flags = 0;

	bpf_map_lookup_elem(bpf_map__fd(s->embedded.skel->maps.processes), &pid, &flags);
	return flags;
}

/* Refuses all changes of an entry by the worker, which may only delete processes that have ended: see process__set. */
static bool refuse_change(const void *key, const void *value)
{
	return false;
}

STEERING(ended_processes) = {
	.map = "processes",
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
	.check = refuse_change,
};

/*
 * Changes some flags and leaves the others. A BPF program does it, because BPF programs change flags at the same
 * time.
 */
static void change_flags(struct session *s, u32 pid, u32 set, u32 clear)
{
	struct process_change c = { .pid = pid, .flags = set, .clear = clear };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &c, .ctx_size_in = sizeof(c));

	if ((process__get(s, pid) & (set | clear)) == set)
		return;
	if (bpf_prog_test_run_opts(bpf_program__fd(s->embedded.skel->progs.core_set), &opts) ||
	    (c.now & (set | clear)) != set)
		losses__add(s, 0, LOSS_MAP_FULL, 1, session__now(s), session__now(s), 0);
	/* the program that deletes ended processes may have run before: the entry would never be deleted */
	if (session__has_ended(pid))
		attacher__map_set(s->attacher, "processes", &pid, NULL, 0);
}

void process__set(struct session *s, u32 pid, u32 flags)
{
	change_flags(s, pid, flags, 0);
}

void process__clear(struct session *s, u32 pid, u32 flags)
{
	change_flags(s, pid, 0, flags);
}

bool session__has_filter(const struct session *s)
{
	return s->filter.need;
}

bool session__selects(const struct session *s, u32 pid)
{
	return !s->filter.need || (process__get(s, pid) & PROCESS_SELECTED);
}

bool process__is_passed_on(const struct session *s, u32 pid)
{
	return !s->filter.need || (process__get(s, pid) & (PROCESS_SELECTED | PROCESS_PASSED_ON));
}

/*
 * BPF adds a process that ends to `ended` before it deletes it from `processes`: in this order it is found in one of
 * them.
 */
bool process__was_selected(const struct session *s, u32 pid)
{
	u64 started;

	return !pid || session__selects(s, pid) ||
	       !bpf_map_lookup_elem(bpf_map__fd(s->embedded.skel->maps.ended), &pid, &started);
}

/* A pidfd is readable when its process has ended. */
static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int targets__open(struct session *s, char *err, size_t len)
{
	struct targets *t = &s->targets;
	u32 alive = 0;

	t->pidfds = calloc(s->args->n_pids + 1, sizeof(*t->pidfds));
	if (!t->pidfds) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	for (u32 i = 0; i < s->args->n_pids; i++) {
		u32 pid = s->args->pids[i];
		int fd = t->pidfds[t->n++] = syscall(__NR_pidfd_open, pid, 0);
		bool ended = fd >= 0 && has_ended(fd);
		char gone[128];

		if (fd >= 0 && !ended)
			alive++;
		else if (ended)
			session__warn(s, "%s", procs__gone(pid, gone, sizeof(gone)));
		else if (errno == EINVAL || errno == ENOENT)
			session__warn(s, "-p %u is a thread, not a process: name its process (Tgid in /proc/%u/status)",
				      pid, pid);
		else
			session__warn(s,
				      "-p %u: no such process: it ended before tracing began, or the number is wrong",
				      pid);
		s->not_attached += fd < 0 || ended;
	}
	if (t->n && !alive) {
		snprintf(err, len, "none of the processes named by -p is running: nothing to trace");
		return -ESRCH;
	}
	return 0;
}

/* Reads /proc once; returns how many processes were added. */
static int add_children(struct session *s)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int added = 0;

	while (dir && (d = readdir(dir))) {
		u32 pid = atoi(d->d_name), ppid;

		if (!isdigit((unsigned char)d->d_name[0]) || (process__get(s, pid) & PROCESS_TREE))
			continue;
		ppid = (u32)procs__status(pid, "PPid: %llu");
		if (ppid && (process__get(s, ppid) & PROCESS_TREE)) {
			process__set(s, pid, PROCESS_TREE);
			/* do not count a zombie: it would be found again and again */
			added += (process__get(s, pid) & PROCESS_TREE) != 0;
		}
	}
	if (dir)
		closedir(dir);
	return added;
}

void targets__select(struct session *s)
{
	for (u32 i = 0; i < s->targets.n; i++)
		if (s->targets.pidfds[i] >= 0)
			process__set(s, s->args->pids[i], PROCESS_TREE);
	while (s->targets.n && add_children(s))
		;
}

bool targets__have(const struct session *s, u32 pid)
{
	for (u32 i = 0; i < s->args->n_pids; i++)
		if (s->args->pids[i] == pid)
			return true;
	return false;
}

bool session__targets_ended(const struct session *s)
{
	for (u32 i = 0; i < s->targets.n; i++)
		if (s->targets.pidfds[i] >= 0 && !has_ended(s->targets.pidfds[i]))
			return false;
	return s->targets.n > 0;
}

void targets__close(struct targets *t)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->pidfds[i] >= 0)
			close(t->pidfds[i]);
	free(t->pidfds);
}
