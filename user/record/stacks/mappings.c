// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/mappings.h"

#include "core/meta.h"
#include "record/family.h"
#include "util/array.h"
#include "util/map.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define CODE_MAX    4096 /* mappings of one process */
#define TOTAL_MAX   262144 /* of all processes */
#define PATH_LENGTH 4096
#define PATHS_BYTES (16u << 20) /* of all paths; code in further files has no name */
#define READ_EVERY  1000000000ULL /* ns: minimum interval between two reads of a process's list */
#define SWEEP_EVERY 5000000000ULL /* ns */
#define KEEP	    10000000000ULL /* ns that an ended process is stored, because its last records may arrive late */

struct process_code {
	struct mapped_code *list; /* the newest last */
	u32 n;
	u64 read; /* time at which its list was read; 0: never */
	u64 ended; /* time at which its end was noticed; 0: it still runs */
};

/* A path and the number of mappings with it. */
struct path {
	char *text;
	u32 users;
};

struct mappings {
	struct session *session;
	struct map processes; /* by pid: struct process_code */
	struct map by_path; /* u64, hash of a path: struct path */
	u64 path_bytes;
	u32 total;
	u64 dropped, reported; /* mappings that were dropped for lack of room: code in them has no names */
	u64 ended; /* processes that were removed */
	u64 next_sweep;
};

struct mappings *mappings__new(struct session *s)
{
	struct mappings *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->session = s;
	map__init(&m->processes, sizeof(u32), sizeof(struct process_code));
	map__init(&m->by_path, sizeof(u64), sizeof(struct path));
	return m;
}

/* Drops one reference to the path. */
static void release_path(struct mappings *m, u64 hash)
{
	struct path *p = map__find(&m->by_path, &hash);

	if (!p || --p->users)
		return;
	m->path_bytes -= strlen(p->text) + 1;
	free(p->text);
	map__remove(&m->by_path, &hash);
}

static void forget_process(struct mappings *m, struct process_code *p)
{
	for (u32 i = 0; i < p->n; i++)
		release_path(m, p->list[i].path);
	m->total -= p->n;
	free(p->list);
	memset(p, 0, sizeof(*p));
}

void mappings__free(struct mappings *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->processes.n; i++)
		forget_process(m, map__value(&m->processes, i));
	map__free(&m->processes);
	map__free(&m->by_path);
	free(m);
}

const char *mappings__path(const struct mappings *m, u64 path)
{
	const struct path *p = map__find(&m->by_path, &path);

	return p ? p->text : "";
}

/* Returns the path's hash, with one more reference; 0: no path, or no room. */
static u64 path_hash(struct mappings *m, const char *path)
{
	size_t size = path ? strlen(path) + 1 : 0;
	u64 hash = size > 1 ? map__hash_bytes(path, size - 1) : 0;
	struct path *p = map__find(&m->by_path, &hash);

	if (!p && size > 1 && m->path_bytes + size <= PATHS_BYTES) {
		p = map__get(&m->by_path, &hash);
		if (p && !(p->text = strdup(path))) {
			map__remove(&m->by_path, &hash);
			return 0;
		}
		m->path_bytes += p ? size : 0;
	}
	if (!p)
		return 0;
	p->users++;
	return hash;
}

static bool is_same(const struct mapped_code *a, const struct mapped_code *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->ino == b->ino &&
	       a->dev == b->dev && a->path == b->path;
}

/* Makes room for one more mapping in the process's list; drops the oldest at the limit. */
static bool make_room(struct mappings *m, struct process_code *p)
{
	if (p->n == CODE_MAX) {
		release_path(m, p->list[0].path);
		memmove(p->list, p->list + 1, --p->n * sizeof(*p->list));
		m->total--;
	}
	if (m->total >= TOTAL_MAX) {
		m->dropped++;
		return false;
	}
	return array__room(p->list, p->n);
}

/* Takes over the reference to the path. */
static void add_mapping(struct mappings *m, struct process_code *p, const struct mapped_code *c)
{
	bool known = false;

	for (u32 i = p->n; i > 0 && !known; i--)
		known = is_same(&p->list[i - 1], c);
	if (known || !make_room(m, p)) {
		release_path(m, c->path);
		return;
	}
	p->list[p->n++] = *c;
	m->total++;
}

void mappings__add(struct mappings *m, const struct mapping *at)
{
	struct process_code *p = map__get(&m->processes, &at->pid);
	struct mapped_code c = {
		.start = at->start,
		.end = at->end,
		.link_start = at->start,
		.link_end = at->end,
		.offset = at->offset,
		.dev = at->dev,
		.ino = at->ino,
		.generation = at->generation,
		.path = path_hash(m, at->path),
		.time = at->time,
	};

	if (!p) {
		release_path(m, c.path);
		return;
	}
	/* an earlier process with this pid */
	if (p->ended)
		forget_process(m, p);
	add_mapping(m, p, &c);
}

/* A line of /proc/PID/maps */
struct map_line {
	struct mapped_code code; /* without the path */
	bool is_code;
	char *path; /* NULL: none */
};

/* false: the line is invalid */
static bool parse_line(char *text, struct map_line *l)
{
	struct mapped_code *c = &l->code;
	unsigned int major, minor;
	char flags[8];
	int path = 0;

	*l = (struct map_line){};
	if (sscanf(text, "%llx-%llx %7s %llx %x:%x %llu %n", &c->start, &c->end, flags, &c->offset, &major, &minor,
		   &c->ino, &path) < 7)
		return false;
	c->link_start = c->start;
	c->link_end = c->end;
	c->dev = (u64)major << 20 | minor;
	l->is_code = strchr(flags, 'x') != NULL;
	text[strcspn(text, "\n")] = '\0';
	l->path = path && text[path] ? text + path : NULL;
	return true;
}

static void add_current(struct mappings *m, struct process_code *p, struct mapped_code *c, const char *path)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].start == c->start && p->list[i].end == c->end && p->list[i].offset == c->offset &&
		    p->list[i].ino)
			return;
	c->path = path_hash(m, path);
	add_mapping(m, p, c);
}

/*
 * Programs copy their code to large pages: memory without a file takes the place of a part of the file. It lies behind
 * one mapping of the file and before another one, and both are where they would be if it had been mapped as a whole.
 */
static bool is_moved(const struct mapped_code *before, const struct mapped_code *moved,
		     const struct mapped_code *behind)
{
	return before->ino && before->ino == behind->ino && before->dev == behind->dev && before->end == moved->start &&
	       moved->end == behind->start && before->start - before->offset == behind->start - behind->offset;
}

/*
 * Adds current mappings that are not known yet: those from before the scan, or with other inode numbers (overlayfs).
 */
static void read_maps(struct mappings *m, u32 pid, struct process_code *p)
{
	struct mapped_code file = {}, memory = {}; /* the last mapping of a file, and code without one behind it */
	u64 now = session__now(m->session);
	char line[PATH_LENGTH + 128];
	struct map_line l;
	FILE *f;

	if (p->read && now - p->read < READ_EVERY)
		return;
	p->read = now;
	f = session__maps(m->session, pid);
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (!parse_line(line, &l))
			continue;
		if (memory.end && is_moved(&file, &memory, &l.code)) {
			memory.offset = memory.start - file.start + file.offset;
			memory.link_start = file.start;
			memory.link_end = file.end;
			memory.dev = file.dev;
			memory.ino = file.ino;
			add_current(m, p, &memory, l.path);
		} else if (memory.end) {
			add_current(m, p, &memory, NULL);
		}
		memory = l.is_code && !l.path ? l.code : (struct mapped_code){};
		if (l.is_code && l.path)
			add_current(m, p, &l.code, l.path);
		if (!memory.end)
			file = l.code;
	}
	if (memory.end)
		add_current(m, p, &memory, NULL);
	fclose(f);
}

/* Returns the newest mapping at that time, else the oldest later one, because a record's time may be slightly early. */
static const struct mapped_code *find_mapping(const struct process_code *p, u64 addr, u64 time)
{
	const struct mapped_code *best = NULL;

	for (u32 i = 0; p && i < p->n; i++) {
		const struct mapped_code *c = &p->list[i];

		if (addr < c->start || addr >= c->end)
			continue;
		if (!best || (c->time <= time && c->time >= best->time) || (best->time > time && c->time < best->time))
			best = c;
	}
	return best;
}

const struct mapped_code *mappings__at(struct mappings *m, u32 pid, u32 parent, u64 addr, u64 time)
{
	struct process_code *p = map__get(&m->processes, &pid);
	const struct mapped_code *c = find_mapping(p, addr, time);

	if (c || !p)
		return c;
	read_maps(m, pid, p);
	c = find_mapping(p, addr, time);
	return c || !parent ? c : find_mapping(map__find(&m->processes, &parent), addr, time);
}

void mappings__tick(struct mappings *m, u64 now)
{
	if (m->dropped != m->reported)
		session__lost(m->session, "sample", LOSS_BUDGET, m->dropped - m->reported);
	m->reported = m->dropped;
	if (now < m->next_sweep)
		return;
	m->next_sweep = now + SWEEP_EVERY;
	/* backward, because removing an entry moves the last one to its index */
	for (u32 i = m->processes.n; i-- > 0;) {
		struct process_code *p = map__value(&m->processes, i);
		u32 pid = *(const u32 *)map__key(&m->processes, i);

		if (p->ended && now - p->ended > KEEP) {
			forget_process(m, p);
			map__remove(&m->processes, &pid);
			m->ended++;
		} else if (!p->ended && kill((pid_t)pid, 0) && errno == ESRCH) {
			p->ended = now;
		}
	}
}

void mappings__sizes(const struct mappings *m, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "processes with mapped code",
				 .entries = m->processes.n,
				 .bytes = map__bytes(&m->processes),
				 .evicted = m->ended },
	   arg);
	fn(&(struct table_size){ .name = "mappings of code",
				 .entries = m->total,
				 .max = TOTAL_MAX,
				 .bytes = m->total * sizeof(struct mapped_code),
				 .evicted = m->dropped },
	   arg);
	fn(&(struct table_size){ .name = "paths of mappings",
				 .entries = m->by_path.n,
				 .bytes = m->path_bytes + map__bytes(&m->by_path) },
	   arg);
}
