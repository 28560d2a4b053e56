// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Takes the last steps of a recording's start that need privileges, and then drops the privileges. */
#include "record/discover/objects.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "sandbox/privileges.h"
#include "sandbox/usage.h"
#include "sonde.skel.h"
#include "util/timing.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static int open_epoll(struct session *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	const int *fds;
	u32 n = mmaps__fds(s->mmaps, &fds);

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, bpf_map__fd(s->embedded.skel->maps.ring_bell), &ev) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, attacher__fd(s->attacher), &ev))
		return -errno;
	for (u32 i = 0; i < n; i++)
		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fds[i], &ev))
			return -errno;
	return 0;
}

static int open_events(struct session *s, char *err, size_t len)
{
	int ret = mmaps__open(&s->mmaps);

	if (ret) {
		snprintf(err, len, "cannot follow new mappings (perf_event_open): %s%s", strerror(-ret),
			 ret == -EACCES || ret == -EPERM ? "; run sonde as root or with CAP_PERFMON" : "");
		return ret;
	}
	ret = open_epoll(s) ?: changed__open(s);
	if (ret)
		snprintf(err, len, "cannot wait for events: %s", strerror(-ret));
	else
		control__open(s);
	return ret;
}

static int start_attacher(struct session *s, char *err, size_t len)
{
	struct steering_maps maps;
	const struct attacher_options options = {
		.command = s->args->command_pid,
		.maps = &maps,
		.perf_events = session__detaches_slowly(s),
		.trusted_files = s->args->trusted_files,
		.remote_files = s->args->remote_files,
		.stop = s->args->stop,
		.idle = drain__on_idle,
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
	ret = ret ?: open_events(s, err, len);
	timing__step("rings, mmap records");
	if (!ret && (ret = filter__load(s)))
		snprintf(err, len, "cannot set the filters: %s", strerror(-ret));
	ret = ret ?: tracepoints__attach(s, err, len);
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
