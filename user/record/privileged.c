// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Takes the last steps of a recording's start that need privileges, and then drops the privileges. */
#include "record/examine.h"
#include "record/internal.h"
#include "record/refused.h"
#include "sandbox/privileges.h"
#include "sandbox/usage.h"
#include "sonde.skel.h"
#include "util/timing.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/*
 * Programs on one tracepoint run in the order of their links. The core's programs update the set of processes, which
 * the families' programs read: a process that starts must be in the set before the families' programs run, and one
 * that ends must be in it until they have run. A process's fork is recorded before all other events of the process,
 * because a reader attributes earlier events to the previous process with the same pid. Families' programs at the
 * entry of a system call run in the reverse order of those at its exit, so that what two families record of one call
 * nests.
 */
enum { ORDER_FIRST, ORDER_FORK, ORDER_FAMILIES, ORDER_ENTRIES, ORDER_LAST };

static int order_of(const struct program *p)
{
	if (!strcmp(p->section.rest, "sched_process_fork") && !strcmp(p->family->name, "proc"))
		return ORDER_FORK;
	if (p->family->id)
		return strcmp(p->section.rest, "sys_enter") ? ORDER_FAMILIES : ORDER_ENTRIES;
	return strcmp(p->section.rest, "sched_process_exit") ? ORDER_FIRST : ORDER_LAST;
}

static int attach_tracepoints(struct session *s, char *err, size_t len)
{
	u32 n = s->embedded.probes.n_programs;
	int ret = 0;

	for (int order = ORDER_FIRST; order <= ORDER_LAST; order++)
		for (u32 i = 0; i < n && !ret; i++) {
			struct program *p = &s->embedded.probes.programs[order == ORDER_ENTRIES ? n - 1 - i : i];

			if (!p->enabled || p->section.kind != SECTION_TRACEPOINT || p->section.on_demand ||
			    order_of(p) != order)
				continue;
			ret = attacher__attach(s->attacher, p);
			if (ret == -EPIPE)
				snprintf(err, len, "the process that attaches has ended");
			else if (ret)
				ret = refused__unattached(s, p, ret, err, len);
		}
	return ret;
}

static int open_epoll(struct session *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	const int *fds;
	u32 n = mmaps__fds(s->mmaps, &fds);

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, bpf_map__fd(s->skel->maps.ring_bell), &ev) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, attacher__fd(s->attacher), &ev))
		return -errno;
	for (u32 i = 0; i < n; i++)
		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fds[i], &ev))
			return -errno;
	return 0;
}

static int follow(struct session *s, char *err, size_t len)
{
	int ret = mmaps__open(&s->mmaps);

	if (ret) {
		snprintf(err, len, "cannot follow new mappings (perf_event_open): %s%s", strerror(-ret),
			 ret == -EACCES || ret == -EPERM ? "; run sonde as root or with CAP_PERFMON" : "");
		return ret;
	}
	ret = open_epoll(s);
	if (!ret)
		ret = changed__open(s);
	if (ret)
		snprintf(err, len, "cannot wait for events: %s", strerror(-ret));
	return ret;
}

static void on_idle(void *arg)
{
	drain__copy(arg);
}

static int start_attacher(struct session *s, char *err, size_t len)
{
	struct steering_maps maps;
	const struct attacher_options options = {
		.command = s->args->command_pid,
		.maps = &maps,
		.perf_events = s->method.entry == ATTACH_PERF,
		.trusted_files = s->args->trusted_files,
		.remote_files = s->args->remote_files,
		.stop = s->args->stop,
		.idle = on_idle,
		.arg = s,
	};
	int ret;

	for (u32 i = 0; i < STEERING_MAX; i++)
		maps.fds[i] = i < steering__count() ? session__map_fd(s, steering__at(i)->map) : -1;
	ret = attacher__start(&s->attacher, &s->embedded.probes, &options);
	if (ret)
		snprintf(err, len, "cannot start the process that attaches: %s", strerror(-ret));
	return ret;
}

static void add_lacks(char *text, size_t len, const char *who, const char *lacks)
{
	size_t used = strlen(text);

	if (*lacks)
		snprintf(text + used, len - used, "%s%s: %s", used ? "; " : "", who, lacks);
}

/*
 * Drops the privileges of this process; one line reports the parts of the confinement that this process, or one of
 * the others, could not set up.
 */
static int confine(struct session *s, char *err, size_t len)
{
	char lacks[512] = "", attachers[512] = "", text[1280] = "";
	int ret = attacher__lacks(s->attacher, attachers, sizeof(attachers));

	if (ret) {
		snprintf(err, len, "the process that attaches does not answer: %s", strerror(-ret));
		return ret;
	}
	memory__limit(s);
	maps__restrict(s, lacks, sizeof(lacks));
	ret = privileges__worker(lacks, sizeof(lacks));
	if (ret)
		snprintf(err, len, "cannot drop privileges: %s", strerror(-ret));
	add_lacks(text, sizeof(text), "sonde, which reads what targets wrote", lacks);
	add_lacks(text, sizeof(text), "sonde-attacher, which attaches, and its children", attachers);
	if (!ret && *text)
		session__warn(
			s,
			"less confined than they should be: %s. Tracing continues; docs/security.md explains what that means",
			text);
	return ret;
}

/*
 * Runs the last operations for which this process needs privileges. Afterwards it reads data of targets, and requests
 * from the attacher what needs privileges. Of /proc it reads only the parents of processes before it drops its
 * privileges, because the mount option `hidepid` hides these from a process without privileges.
 */
int privileged__start(struct session *s, char *err, size_t len)
{
	int ret;

	usage__open();
	ret = start_attacher(s, err, len);
	if (ret)
		return ret;
	timing__step("attacher started");
	ret = hosts__open(s);
	if (ret)
		snprintf(err, len, "out of memory");
	else
		ret = drain__open(s, err, len);
	if (!ret)
		ret = follow(s, err, len);
	timing__step("rings, mmap records");
	if (!ret && (ret = filter__load(s)))
		snprintf(err, len, "cannot set the filters: %s", strerror(-ret));
	if (!ret)
		ret = attach_tracepoints(s, err, len);
	timing__step("tracepoints attached");
	if (ret)
		return ret;
	ret = filter__seed(s);
	if (ret) {
		snprintf(err, len, "cannot read the names and cgroups of the running processes: %s", strerror(-ret));
		return ret;
	}
	targets__select(s);
	preattach__find(s);
	ret = confine(s, err, len);
	timing__step("privileges dropped");
	if (!ret && (ret = examiner__start(s)))
		snprintf(err, len, "cannot start the process that parses files: %s", strerror(-ret));
	timing__step("examiner started");
	return ret;
}
