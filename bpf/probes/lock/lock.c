// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the lock family: follows threads that exist already, and names call sites. A site is named when its
 * first wait is drained, about 100 ms after it: the sites of a process that has ended by then have no names.
 */
#include "lock.h"
#include "record/family.h"
#include "util/recent.h"

#include <stdio.h>
#include <unistd.h>

#define SITES_MAX 16384 /* sites that were named already, per generation of `named`; an evicted one is named again */

#define SITES_FEW 32 /* the limit with SONDE_TEST=small-tables */

struct site_key {
	u64 address;
	u32 pid;
	u32 unused;
};

/* The file and mapping of an address in a process. */
struct code_mapping {
	u64 start, end, offset; /* the mapping, and its offset in the file */
	char path[512];
};

struct lock_state {
	struct recent named; /* struct site_key -> bool */
};

static struct lock_state *state_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_lock_wait));
}

static void begin(struct session *s)
{
	recent__init(&state_of(s)->named, sizeof(struct site_key), sizeof(bool),
		     session__test_switch("small-tables") ? SITES_FEW : SITES_MAX);
}

static void end(struct session *s)
{
	recent__free(&state_of(s)->named);
}

static bool find_mapping(struct session *s, u32 pid, u64 address, struct code_mapping *p)
{
	FILE *f = session__maps(s, pid);
	bool found = false;
	char line[1024];

	while (f && !found && fgets(line, sizeof(line), f)) {
		*p->path = '\0';
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511[^\n]", &p->start, &p->end, &p->offset, p->path) >= 3)
			found = address >= p->start && address < p->end;
	}
	if (f)
		fclose(f);
	return found && *p->path == '/';
}

/* The function at a file offset, as "name+0x12"; "" if the file does not have it. */
static void name_function(struct session *s, u32 pid, const struct code_mapping *p, u64 offset, char *out, size_t len)
{
	struct mapping m = { .pid = pid, .start = p->start, .end = p->end };
	int fd = session__open_mapped(s, &m);
	char name[224];
	u64 begins;

	*out = '\0';
	if (fd < 0)
		return;
	if (!session__symbol(s, fd, p->path, offset, name, sizeof(name), &begins) && *name)
		snprintf(out, len, "%s+0x%llx", name, offset - begins);
	close(fd);
}

static void name_site(struct session *s, const struct event *e, u64 address)
{
	struct site_key key = { .address = address, .pid = e->pid };
	struct lock_site r = {
		.event = { .time = e->time, .pid = e->pid, .tid = e->tid, .id = ID_lock_site },
		.address = address,
	};
	struct recent *named = &state_of(s)->named;
	struct code_mapping p;
	char symbol[256];
	bool *known;

	if (!address || recent__find(named, &key))
		return;
	known = recent__get(named, &key);
	if (!known || !find_mapping(s, e->pid, address, &p))
		return;
	*known = true;
	/* the call is before its return address, and may be the last instruction of its function */
	r.offset = address - p.start + p.offset;
	name_function(s, e->pid, &p, r.offset - 1, symbol, sizeof(symbol));
	r.module = session__intern(s, session__path(s, p.path));
	r.symbol = session__intern(s, symbol);
	session__emit(s, &r, sizeof(r));
}

static void on_event(struct session *s, const struct event *e, u32 size)
{
	const struct lock_wait *w = (const struct lock_wait *)e;

	if (e->id != ID_lock_wait || size < sizeof(*w))
		return;
	name_site(s, e, w->site);
	name_site(s, e, w->caller);
	name_site(s, e, w->caller2);
}

static void sizes(const struct session *s, table_size_fn *fn, void *arg)
{
	const struct recent *named = &state_of(s)->named;

	fn(&(struct table_size){ .name = "call sites of locks",
				 .entries = recent__entries(named),
				 .max = 2 * named->max,
				 .bytes = recent__bytes(named),
				 .evicted = named->evicted },
	   arg);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("lock_enter"),
	FAMILY_WHOLE("lock_exit"),
	FAMILY_WHOLE("lock_begin"),
	FAMILY_PART("lock_waking", "the threads that ended waits"),
	FAMILY_PART("lock_forked", "waits of threads that begin while sonde traces"),
	FAMILY_PART("lock_thread_exit", "waits that ended with their thread"),
	FAMILY_PART("lock_execed", "waits that ended with an exec"),
	FAMILY_PART("lock_open_waits", "waits still open when the recording stopped"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(lock) = {
	.name = "lock",
	.parts = parts,
	.is_runtime = runtime__is_one,
	.state = sizeof(struct lock_state),
	.begin = begin,
	.end = end,
	.follow_iterator = "lock_begin",
	.event = on_event,
	.sizes = sizes,
};
