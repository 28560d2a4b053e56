// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for other processes and machines: for which file, pipe or socket, and which process ended the waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/both_ends.h"
#include "findings/callee.h"
#include "findings/classify.h"
#include "findings/waited_for.h"
#include "findings/compute.h"
#include "findings/titles.h"
#include "output/text.h"

/* The factor of the weight of a wait that ends when another thread of the same process has slept */
#define PAUSE_WEIGHT 0.1

/* That of a server's wait for data of a client, mostly for its next request: what the client does says more. */
#define REQUEST_WEIGHT 0.02

/*
 * Waits no longer than a server nearby takes to answer. If there are many, the code around each wait costs more than
 * the wait itself.
 */
#define ROUND_TRIPS   100
#define ROUND_TRIP_NS 3000000u

/* CPU time of the group's threads */
static u64 run_of(const struct finding_input *in, const struct group *g)
{
	u64 ns = 0;

	for (u32 i = 0; i < g->n; i++) {
		const struct profile_key *key = profile__key(in->profile, g->cells[i]);
		const struct profile_thread *t = map__find(&in->profile->threads, &key->thread);

		/* cells are in order of their threads */
		if (t && (!i || key->thread.tid != profile__key(in->profile, g->cells[i - 1])->thread.tid))
			ns += t->run;
	}
	return ns;
}

/* A function that asks for one thing after the other: what its round trips cost with the CPU time that they take. */
static void add_round_trips(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct computed c;
	char text[128];
	double run;

	if (g->times < ROUND_TRIPS || g->ns / g->times > ROUND_TRIP_NS || !g->code || !strncmp(f->object, "pipe", 4))
		return;
	computed__of(&c, in, f->pid, g->code);
	run = c.all_ns ? (double)run_of(in, g) * (double)c.ns / (double)c.all_ns : 0;
	f->weight += run;
	snprintf(text, sizeof(text), "many small round trips that could be combined: one after the other, %s a second",
		 TEXT_COUNT(g->times * 1000000000 / (query__measured(in->q) + 1)));
	finding__add_detail(f, text);
}

/* With at least so many connections, and at most so many answers on each, the code opens a new one each time. */
#define CONNECTIONS 10
#define ANSWERS	    20

static const char *address_of(const char *name, size_t *len)
{
	const char *to = strncmp(name, "tcp ", 4) ? NULL : strstr(name, " to ");

	*len = to ? strcspn(to + 4, " ") : 0;
	return to ? to + 4 : NULL;
}

/* Adds the number of connections to the peer, if the code does not reuse them. Returns whether that is so. */
static bool add_connections(const struct finding_input *in, const struct group *g, struct finding *f)
{
	size_t len, other_len;
	const char *address = address_of(f->object, &len), *other;
	char text[160];
	struct map seen; /* u64 object -> u8 */
	bool opens;

	map__init(&seen, sizeof(u64), sizeof(u8));
	for (u32 i = 0; address && i < g->n; i++) {
		const struct profile_key *key = profile__key(in->profile, g->cells[i]);
		const struct osrt_file *file = key->object ? osrt_files__find(in->files, f->pid, (u32)key->object) :
							     NULL;

		other = file ? address_of(osrt_files__name(in->files, file->number), &other_len) : NULL;
		if (other && len == other_len && !memcmp(address, other, len))
			map__get(&seen, &key->object);
	}
	opens = seen.n >= CONNECTIONS && g->times <= (u64)ANSWERS * seen.n;
	if (opens) {
		snprintf(text, sizeof(text),
			 "on %u connections to %.*s, with %llu answer%s on each: it opens a new connection each time",
			 seen.n, (int)len, address, g->times / seen.n, text__s(g->times / seen.n));
		finding__add_detail(f, text);
	}
	map__free(&seen);
	return opens;
}

/* Adds the function of a package in which most of the waits were: an ORM's, of which the user's line says nothing. */
static void add_package(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct callees callees;
	char name[CALLEE_TEXT], text[CALLEE_TEXT + 48];
	struct callee callee;

	callees__init(&callees, in->stacks);
	for (u32 i = 0; i < g->n; i++) {
		u32 stack = profile__key(in->profile, g->cells[i])->stack;

		if (stack)
			callees__add(&callees, stack, stack_parts__of(in->stacks, stack).user,
				     profile__cell(in->profile, g->cells[i])->ns);
	}
	callees__finish(&callees, true, &callee);
	if (!callee.is_package)
		return;
	snprintf(text, sizeof(text), "%.0f%% of these waits were in %s", callee.percent,
		 callee__text(&callee, name, sizeof(name)));
	finding__add_detail(f, text);
}

/* Ports from this one on are those of sockets that no program has chosen one for (ip_local_port_range). */
#define EPHEMERAL_PORT 32768

/* Is it a UDP socket with a port of its own, but no peer, on which a server waits for requests? */
static bool is_udp_server(const char *name)
{
	const char *port = strrchr(name, ':');

	return !strncmp(name, "udp ", 4) && !strstr(name, " to ") && port && atoi(port + 1) < EPHEMERAL_PORT;
}

/*
 * Is it the end of a TCP connection that a server has accepted? Its own port is one that a program chose, the peer's is
 * not.
 */
static bool is_accepted_connection(const char *name)
{
	const char *to = strncmp(name, "tcp ", 4) ? NULL : strstr(name, " to ");
	const char *port = to ? memrchr(name, ':', (size_t)(to - name)) : NULL;
	const char *peer = to ? memrchr(to + 4, ':', strcspn(to + 4, " ")) : NULL;

	return port && peer && atoi(port + 1) < EPHEMERAL_PORT && atoi(peer + 1) >= EPHEMERAL_PORT;
}

#define DNS_PORT ":53"

/* Is the peer a name server? A client that asks one by itself has no function of a library that says so. */
static void add_name_server(struct finding *f)
{
	const char *to = strstr(f->object, " to "), *end = to ? to + 4 + strcspn(to + 4, " ") : NULL;

	if (end && !f->words && end - to > 4 + 3 && !strncmp(end - strlen(DNS_PORT), DNS_PORT, strlen(DNS_PORT)))
		f->words = "a name lookup (DNS)";
}

/*
 * Is the other end a process of sonde, which a script waits for? Only the end of a name is written by sonde, and only
 * with a peer.
 */
static bool is_of_sonde(const struct osrt_file *file, const char *name)
{
	const char *peer = file && file->peer ? strrchr(name, '(') : NULL;

	return peer && !strncmp(peer, "(sonde ", 7);
}

/* The writer of a pipe does something that is no cause if its reader waits for longer than this each time. */
#define IDLE_WRITER_NS 50000000u

/*
 * Does a thread in the background, or a native program, read what a process writes now and then, such as `tail -F`?
 * sonde follows processes that do much, so one that it did not follow beside others does next to nothing.
 */
static bool reads_idle_writer(const struct finding_input *in, const struct group *g, const struct finding *f)
{
	struct group_most caused_by = group__most(in, g, GROUP_CAUSED_BY), stack = group__most(in, g, GROUP_STACK);
	struct stack_parts parts = stack_parts__of(in->stacks, (u32)stack.value);
	u32 pid = (u32)(caused_by.value >> 32);
	bool has_others = false;

	if (strncmp(f->object, "pipe", 4) != 0 || strcmp(f->call, "read") != 0 || f->threads != 1 ||
	    (f->tid == f->pid && parts.python) || !pid || g->ns / (g->times ? g->times : 1) < IDLE_WRITER_NS ||
	    parts.serves)
		return false;
	for (u32 i = 0; i < in->profile->threads.n; i++) {
		const struct thread_key *thread = map__key(&in->profile->threads, i);

		if (thread->pid == pid)
			return false;
		has_others = has_others || thread->pid != f->pid;
	}
	return has_others;
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct group_most file = group__most(in, g, GROUP_OBJECT);
	const struct osrt_file *known = file.value ? osrt_files__find(in->files, f->pid, (u32)file.value) : NULL;
	bool is_accepted;

	(void)arg;
	snprintf(f->report, sizeof(f->report), "osrt");
	if (known)
		snprintf(f->object, sizeof(f->object), "%s", osrt_files__name(in->files, known->number));
	is_accepted = is_accepted_connection(f->object);
	add_name_server(f);
	titles__add(in, g, f);
	add_package(in, g, f);
	if (is_accepted) {
		f->weight *= REQUEST_WEIGHT;
	} else if (!add_connections(in, g, f)) {
		if (both_ends__add(in, g, f))
			return 0;
		add_round_trips(in, g, f);
	}
	/* a script that waits for `sonde record` has nothing to do */
	if (is_of_sonde(known, f->object) || is_udp_server(f->object) || waited_for__is_idle(in, g) ||
	    reads_idle_writer(in, g, f)) {
		group__set_idle(in, g, f);
		return 0;
	}
	/* the process that ended the waits wrote what was waited for, or read what made room */
	if (waited_for__follow(in, g, f)) {
		/* a thread that is sent something now and then waits for something to do */
		if (f->counterpart.is_pause && is_accepted) {
			group__set_idle(in, g, f);
			return 0;
		}
		if (f->counterpart.is_pause)
			f->weight *= PAUSE_WEIGHT;
		if (f->counterpart.pid != f->pid || f->counterpart.tid != f->tid)
			return 0;
	}
	group__add_ender(in, g, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	return groups__each_finding(in, FINDING_PEER, out, complete, NULL);
}

FINDINGS(peer) = { .name = "peer", .decides_colours = true, .find = find };
