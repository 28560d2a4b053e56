// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The child of a meter (record/meter.h). It opens the library after it has dropped all privileges, so that none of the
 * library's code, and nothing that this code reads, ever runs with them.
 */
#include "record/meter_private.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sandbox/message.h"
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "util/priority.h"
#include "util/sanitizer.h"
#include "util/timing.h"

#define SOCKET_FD 3
#define FILES_MAX 1024
#define DATA_MAX  (1ULL << 30)

u64 meter__period(const struct meter_child *c)
{
	return c->period;
}

static void send_message(struct meter_child *c, const struct meter_message *m, size_t bytes)
{
	if (message__send(c->sock, m, METER_HEAD + bytes, -1))
		c->is_gone = true;
}

static void send_records(struct meter_child *c)
{
	u32 bytes = c->records.n;

	if (!bytes)
		return;
	c->records.kind = METER_RECORDS;
	send_message(c, &c->records, bytes);
	c->records.n = 0;
}

void meter__emit(struct meter_child *c, const void *record, u32 size)
{
	u32 head[2] = { size }, padded = (size + 7) & ~7U;

	if (sizeof(head) + padded > sizeof(c->records.data))
		return;
	if (c->records.n + sizeof(head) + padded > sizeof(c->records.data))
		send_records(c);
	memcpy(c->records.data + c->records.n, head, sizeof(head));
	memset(c->records.data + c->records.n + sizeof(head), 0, padded);
	memcpy(c->records.data + c->records.n + sizeof(head), record, size);
	c->records.n += sizeof(head) + padded;
}

void meter__begin_query(struct meter_child *c, const char *name, bool is_start)
{
	snprintf(c->watch->query, sizeof(c->watch->query), "%s", name);
	c->watch->is_start = is_start;
	__atomic_store_n(&c->watch->since, timing__now(), __ATOMIC_RELEASE);
}

void meter__end_query(struct meter_child *c)
{
	__atomic_store_n(&c->watch->since, 0, __ATOMIC_RELEASE);
}

void meter__report(struct meter_child *c, enum meter_report what, const char *fmt, ...)
{
	struct meter_message m = { .kind = METER_REPORT, .n = what };
	int refused = syscalls__refused();
	char name[64];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(m.data, METER_TEXT_MAX, fmt, ap);
	va_end(ap);
	/* this may be the reason */
	if (refused >= 0 && len >= 0 && len < METER_TEXT_MAX)
		snprintf(m.data + len, METER_TEXT_MAX - len, " (sonde's filter of system calls refused it %s)",
			 syscalls__name(refused, name, sizeof(name)));
	send_records(c);
	send_message(c, &m, METER_TEXT_MAX);
}

void meter__missed(struct meter_child *c, u32 readings)
{
	struct meter_message m = { .kind = METER_MISSED, .n = readings };

	send_message(c, &m, 0);
}

static void limit(int what, u64 max)
{
	struct rlimit l = { .rlim_cur = max, .rlim_max = max }, now;

	if (!getrlimit(what, &now) && now.rlim_max < max)
		l.rlim_cur = l.rlim_max = now.rlim_max;
	setrlimit(what, &l);
}

/* Keeps only the socket; other libraries than sonde's own may print. false: failed. */
static bool take_socket(struct meter_child *c)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
	if (null < 0 || dup2(c->sock, SOCKET_FD) < 0 || close_range(SOCKET_FD + 1, ~0U, 0))
		return false;
	c->sock = SOCKET_FD;
	return true;
}

/* Drops all privileges. false: something could not be dropped. */
static bool confine(struct meter_child *c)
{
	char folder[METER_PATH_MAX];
	const char *const read[] = { "/usr",	  "/lib", "/lib64", "/etc/ld.so.cache", "/etc/nvidia", "/proc", "/sys",
				     "/dev/null", folder, NULL };
	char *slash;

	/* where the library is, with the libraries that it needs */
	snprintf(folder, sizeof(folder), "%s", c->libraries[0]);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	/* these signals are meant for the worker */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	priority__lower();
	limit(RLIMIT_RTPRIO, 0);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	if (!SANITIZED)
		limit(RLIMIT_DATA, DATA_MAX);
	return !privileges__meter(read, c->meter->devices) && !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void *open_library(struct meter_child *c)
{
	void *library = NULL;
	char why[128] = "";

	for (u32 i = 0; !library && i < METER_LIBRARIES && *c->libraries[i]; i++) {
		meter__begin_query(c, "dlopen", true);
		library = dlopen(c->libraries[i], RTLD_NOW | RTLD_LOCAL);
		meter__end_query(c);
		if (!library)
			snprintf(why, sizeof(why), "%s", dlerror());
	}
	if (!library)
		meter__report(c, METER_FAILED, "%s can't be loaded: %s", c->meter->library, why);
	return library;
}

/* false: the worker has ended. */
static bool sleep_until(const struct meter_child *c, u64 time)
{
	struct pollfd p = { .fd = c->sock };
	u64 now;

	for (now = timing__now(); now < time; now = timing__now()) {
		const struct timespec t = { (time_t)((time - now) / 1000000000), (long)((time - now) % 1000000000) };

		if (ppoll(&p, 1, &t, NULL) > 0)
			return false;
	}
	return true;
}

void meter_child__run(struct meter_child *c)
{
	void *library, *state = NULL;
	u64 next, now;

	prctl(PR_SET_NAME, c->meter->process);
	usage__forget();
	if (!take_socket(c) || !confine(c))
		_exit(1);
	library = open_library(c);
	if (!library || c->meter->open(c, library, &state))
		_exit(0);
	for (next = timing__now(); !c->is_gone && sleep_until(c, next);) {
		int err = c->meter->read(c, state);

		send_records(c);
		if (err)
			_exit(0);
		/* a reading that takes longer than a period is not made up for */
		now = timing__now();
		next += c->period * (now > next ? (now - next) / c->period + 1 : 1);
	}
	_exit(0);
}
