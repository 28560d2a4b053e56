// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/meters.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/ldcache.h"
#include "record/drain/losses.h"
#include "record/meter_private.h"
#include "record/parts.h"
#include "sandbox/message.h"
#include "sandbox/usage.h"
#include "util/path.h"
#include "util/test_switch.h"
#include "util/timing.h"
#include "util/utf8.h"

#define QUERY_NS     5000000000ULL /* of one query */
#define START_NS     60000000000ULL /* a driver that no process uses initializes each GPU first */
#define TEST_NS	     500000000ULL /* of both, with the test switch short-queries */
#define REPORTS_MAX  16
#define MESSAGES_MAX 4096 /* in one tick */
#define REAP_US	     1000
#define REAP_TRIES   100

/* Is the family named by -t or by one of its options? */
static bool is_requested(struct session *s, const struct meter *m)
{
	const char *list = s->args->families;
	char name[64];

	while (list && section__next_function(&list, name, sizeof(name)))
		if (!strcmp(name + (*name == '+'), m->family))
			return true;
	return session__number(s, m->family, m->period) > 0;
}

struct library_search {
	struct meter_child *child;
	u32 n;
};

static void on_library(const char *path, void *arg)
{
	struct library_search *l = arg;

	if (strcmp(path__file_name(path), l->child->meter->library) != 0 || l->n == METER_LIBRARIES ||
	    strlen(path) >= METER_PATH_MAX)
		return;
	strcpy(l->child->libraries[l->n++], path);
}

static bool find_libraries(struct meter_child *c)
{
	struct library_search search = { .child = c };

	if (!test_switch__text("meter-library", c->libraries[0], sizeof(c->libraries[0])))
		ldcache__each(on_library, &search);
	return *c->libraries[0];
}

static void forget_watch(struct running_meter *r)
{
	if (r->watch)
		munmap(r->watch, sizeof(*r->watch));
	r->watch = NULL;
}

static int fork_child(struct running_meter *r, struct meter_child *c)
{
	int pair[2];

	/* cppcheck-suppress invalidFunctionArg */
	r->watch = mmap(NULL, sizeof(*r->watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->watch == MAP_FAILED) {
		r->watch = NULL;
		return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->watch = r->watch;
	c->sock = pair[1];
	c->period = r->period;
	r->pid = usage__fork();
	if (!r->pid)
		meter_child__run(c);
	close(pair[1]);
	if (r->pid > 0) {
		r->sock = pair[0];
		return 0;
	}
	close(pair[0]);
	r->pid = 0;
	return -errno;
}

/* A requested family records nothing: the exit status reports it. */
static void add_absent(struct session *s)
{
	s->meters.n_absent++;
	s->not_attached++;
}

void session__start_meter(struct session *s, const struct meter *m)
{
	struct running_meter *r = &s->meters.list[s->meters.n];
	struct meter_child *c;
	int err;

	if (s->meters.n == METERS_MAX)
		return;
	*r = (struct running_meter){ .meter = m, .sock = -1, .is_requested = is_requested(s, m) };
	r->family = schema__family(s->embedded.schema, m->family)->id;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->meter = m;
	if (find_libraries(c)) {
		r->period = (session__number(s, m->family, m->period) ?: m->period_ms) * 1000000;
		s->meters.n++;
		err = fork_child(r, c);
		if (err) {
			session__warn(s, "family %s: the process that reads %s can't be started: %s", m->family,
				      m->source, strerror(-err));
			r->missing_since = session__now(s);
		}
	} else if (r->is_requested) {
		add_absent(s);
		session__warn(s, "family %s: this machine has no %s, which comes with %s: it records nothing",
			      m->family, m->library, m->comes_with);
	}
	free(c);
}

/* Ends the child; a child that the kernel does not end is abandoned. Returns its status; -1: not known. */
static int end_child(struct running_meter *r)
{
	int status = -1;

	if (r->sock >= 0)
		close(r->sock);
	r->sock = -1;
	if (!r->pid)
		return status;
	kill(r->pid, SIGKILL);
	for (u32 i = 0; r->pid && i < REAP_TRIES; i++) {
		if (usage__wait(r->pid, &status, WNOHANG))
			r->pid = 0;
		else
			usleep(REAP_US);
	}
	return status;
}

/* The child sends no more: from now on readings are missing. */
static void fail(struct session *s, struct running_meter *r, const char *why)
{
	if (!r->is_absent)
		r->missing_since = session__now(s);
	if (*why)
		session__warn(s, "family %s: %s: there are no more values of %s; the rest of the recording continues",
			      r->meter->family, why, r->meter->source);
}

struct taking {
	struct session *s;
	u64 now;
};

static void take_record(void *arg, struct event *e, u32 size)
{
	const struct taking *t = arg;

	e->time += t->s->time.offset;
	if (e->time > t->now || e->time < t->s->time.head)
		e->time = t->now;
	*e = (struct event){ .time = e->time, .id = e->id };
	session__emit(t->s, e, size);
}

static void take_records(struct session *s, const struct running_meter *r, const struct meter_message *m, size_t bytes)
{
	struct taking t = { s, session__now(s) };
	u32 refused = meter_message__each(m, bytes, s->embedded.schema, r->family, take_record, &t);

	if (refused)
		losses__add(s, r->family, LOSS_REFUSED, refused, t.now, t.now, 0);
}

static void take_report(struct session *s, struct running_meter *r, const struct meter_message *m, size_t bytes)
{
	char text[METER_TEXT_MAX];

	if (m->n == METER_ABSENT && !r->is_absent && r->is_requested)
		add_absent(s);
	r->is_absent |= m->n == METER_ABSENT;
	if ((m->n == METER_ABSENT && !r->is_requested) || r->reports == REPORTS_MAX)
		return;
	r->reports++;
	meter_message__text(m, bytes, text);
	session__warn(s, "family %s: %s", r->meter->family, text);
}

/* Receives one message. false: there is none. */
static bool receive(struct session *s, struct running_meter *r)
{
	struct meter_message m;
	u64 now = session__now(s);
	char why[96] = "";
	ssize_t n;
	int fd = -1, status;

	if (r->sock < 0 || !message__pending(r->sock))
		return false;
	n = message__receive(r->sock, &m, sizeof(m), &fd);
	if (fd >= 0)
		close(fd);
	if (n < (ssize_t)METER_HEAD) {
		status = end_child(r);
		if (status != -1 && WIFSIGNALED(status))
			snprintf(why, sizeof(why), "%s, which reads %s, was ended by signal %d (%s)", r->meter->process,
				 r->meter->source, WTERMSIG(status), strsignal(WTERMSIG(status)));
		else if (status == -1 || WEXITSTATUS(status))
			snprintf(why, sizeof(why), "%s, which reads %s, has ended", r->meter->process,
				 r->meter->source);
		fail(s, r, why);
		return false;
	}
	if (m.kind == METER_RECORDS)
		take_records(s, r, &m, n - METER_HEAD);
	else if (m.kind == METER_REPORT)
		take_report(s, r, &m, n - METER_HEAD);
	else if (m.kind == METER_MISSED)
		losses__add(s, r->family, LOSS_SOURCE, m.n, now, now, 0);
	return true;
}

/* Ends the child if a query takes too long. */
static void check_query(struct session *s, struct running_meter *r)
{
	u64 since = __atomic_load_n(&r->watch->since, __ATOMIC_ACQUIRE), now = timing__now();
	u64 limit = session__test_switch("short-queries") ? TEST_NS : r->watch->is_start ? START_NS : QUERY_NS;
	char query[METER_QUERY_MAX], clean[METER_QUERY_MAX], why[160];

	if (!since || since > now || now - since < limit)
		return;
	memcpy(query, r->watch->query, sizeof(query));
	query[sizeof(query) - 1] = '\0';
	for (char *p = query; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
			*p = '?';
	utf8__copy(clean, sizeof(clean), query);
	end_child(r);
	snprintf(why, sizeof(why), "%s did not return within %.1f s", clean, (double)limit / 1e9);
	fail(s, r, why);
}

/* Counts the readings since the child failed. */
static void count_missing(struct session *s, struct running_meter *r, u64 now)
{
	u64 n = r->missing_since && now > r->missing_since ? (now - r->missing_since) / r->period : 0;

	if (!n)
		return;
	losses__add(s, r->family, LOSS_SOURCE, n, r->missing_since, r->missing_since + n * r->period, 0);
	r->missing_since += n * r->period;
}

static void poll_meter(struct session *s, struct running_meter *r, u64 now)
{
	for (u32 i = 0; i < MESSAGES_MAX && receive(s, r); i++)
		;
	if (r->sock >= 0)
		check_query(s, r);
	else if (r->pid && usage__wait(r->pid, NULL, WNOHANG))
		r->pid = 0;
	count_missing(s, r, now);
}

void meters__tick(struct session *s, u64 now)
{
	for (u32 i = 0; i < s->meters.n; i++)
		poll_meter(s, &s->meters.list[i], now);
}

void meters__finish(struct session *s)
{
	meters__tick(s, session__now(s));
	for (u32 i = 0; i < s->meters.n; i++)
		end_child(&s->meters.list[i]);
}

void meters__free(struct session *s)
{
	for (u32 i = 0; i < s->meters.n; i++) {
		end_child(&s->meters.list[i]);
		forget_watch(&s->meters.list[i]);
	}
	s->meters.n = 0;
}
