// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every mapped file with code, once each by its backing inode: is it something
 * that a family probes, where, and since when.
 */
#include "record/objects.h"

#include "attach/vmas.h"
#include "process/filesystem.h"
#include "record/native.h"
#include "record/shares.h"
#include "util/file.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who maps files fast enough has records lost: scans of all processes for that take this part of the time at most. */
#define SCAN_PART   20
#define SCAN_RARELY 20000000000ULL /* ns: not more rarely than this, however busy the machine is */

int object__compare(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->generation < y->generation ? -1 : x->generation > y->generation;
}

int objects__new(struct session *s)
{
	s->objects = calloc(1, sizeof(*s->objects));
	if (!s->objects)
		return -ENOMEM;
	objects__bound(s->objects);
	return 0;
}

void object__free(void *node)
{
	struct object *o = node;

	free(o->facts);
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o);
}

void objects__free(struct objects *o)
{
	if (!o)
		return;
	tdestroy(o->by_inode, object__free);
	free(o);
}

u32 objects__probed(const struct objects *o)
{
	return o ? o->probed : 0;
}

static struct object *new_object(struct session *s, const struct mapping *m, u64 first)
{
	struct object *o = calloc(1, sizeof(*o)), **slot;

	if (!o)
		return NULL;
	*o = (struct object){ .dev = m->dev,
			      .ino = m->ino,
			      .generation = m->generation,
			      .first = first,
			      .fd = -1,
			      .path = strdup(m->path) };
	slot = o->path ? tsearch(o, &s->objects->by_inode, object__compare) : NULL;
	if (!slot) {
		free(o->path);
		free(o);
		return NULL;
	}
	s->objects->n++;
	return o;
}

/* One that no object has; after thousands of objects that came and went numbers are used again. 0: none is left. */
static u16 free_id(const struct objects *o)
{
	u16 id = o->last_id;

	for (u32 i = 0; i < OBJECT_ID_MAX; i++) {
		id = id % OBJECT_ID_MAX + 1;
		if (!objects__path(o, id))
			return id;
	}
	return 0;
}

/*
 * Only an object that a family probes has an id: the trace and the losses name objects by their ids.
 * A file that was overwritten is an object anew, with an id of its own.
 */
static void attach(struct session *s, struct object *o, const struct examination *x)
{
	bool probed = o->families;

	/* 0: there are too many, which is reported if a family probes the object */
	if (!probed)
		o->id = s->objects->attached < s->objects->attached_max ? free_id(s->objects) : 0;
	if (object__attach(s, o, x)) {
		s->objects->last_id = probed ? s->objects->last_id : o->id;
		s->objects->attached += !probed;
	} else if (!probed) {
		o->id = 0;
	}
	if (x->end.over_budget)
		session__gave_up(s, o->path, "its tables take more memory than sonde allows itself for files");
}

static int open_mapped(struct session *s, const struct mapping *m)
{
	if (session__is_stopping(s))
		return -EINTR;
	/* of what has FUSE's number the opener finds out whether it is */
	if (!s->args->remote_files && m->magic != FILESYSTEM_FUSE && filesystem__remote(m->magic))
		return -EREMOTE;
	return attacher__open(s->attacher, m);
}

static void refuse(struct session *s, struct object *o)
{
	/* no process maps what was found on disk; it is reported when one does */
	if (o->is_preattached)
		o->examined = o->is_preattached = false;
	else
		object__refuse(s, o, "not an ELF file that can be read");
}

/* Opens the object and has the families probe it; tried again with the next mapping if the process was gone already. */
static void examine(struct session *s, struct object *o, const struct mapping *m)
{
	static struct examination x; /* large */
	int err;

	if (o->fd < 0)
		o->fd = open_mapped(s, m);
	if (o->fd < 0 && o->fd != -ENOEXEC && o->fd != -EREMOTE && o->fd != -ETIMEDOUT)
		return;
	o->examined = true;
	o->pid = m->pid;
	if (o->fd == -EREMOTE || o->fd == -ETIMEDOUT) {
		if (o->fd == -EREMOTE)
			remote__refuse(s, o, m->magic);
		else
			object__refuse_hung(s, o);
		o->fd = -1;
		return;
	}
	/* one that was written to before may be written to while it is examined and probed */
	if (o->fd >= 0 && o->changes)
		object__watch(s, o);
	shares__examined(s);
	err = o->fd < 0 ? -ENOEXEC : examine__object(s, o, m, &x);
	if (err == -ENOEXEC)
		refuse(s, o);
	else if (!err)
		object__keep_facts(s, o, &x);
	if (!err)
		attach(s, o, &x);
	if (o->fd >= 0)
		examination__free(&x);
	if (o->live)
		object__watch(s, o);
	/* only runtimes are examined again, when another process maps them */
	if (!o->families)
		object__forget_file(o);
}

struct object *objects__find(struct session *s, const struct mapping *m)
{
	struct object key = { .dev = m->dev, .ino = m->ino, .generation = m->generation }, **found;

	found = tfind(&key, &s->objects->by_inode, object__compare);
	return found ? *found : NULL;
}

static struct object *mapped(struct session *s, const struct mapping *m, u64 first)
{
	struct object *o = objects__find(s, m);

	/* what only other users map gets no probe; should the process come to be this user's, it is scanned again */
	if (s->args->one_user && !process__is_introduced(s, m->pid))
		return o;
	if (!o)
		o = new_object(s, m, first);
	if (!o)
		return NULL;
	if (!o->examined)
		examine(s, o, m);
	if (o->remote)
		remote__note_process(s, m);
	if (o->families)
		process__set(s, m->pid, PROCESS_RUNTIME);
	s->objects->probed += !o->mapped && o->live;
	o->mapped = o->live;
	o->used = m->time;
	o->unmapped = false;
	if (!process__is_introduced(s, m->pid))
		return o;
	if (s->native)
		native__mapped(s->native, m);
	hosts__mapped(s, o, m);
	return o;
}

struct scan {
	struct session *s;
	u64 now;
	bool late; /* counted as not examined before */
	/* looking for the object of one mmap record */
	const struct mmap_record *record;
	struct object *found;
};

static bool is_known(struct session *s, const struct mapping *m)
{
	const struct object *o = objects__find(s, m);

	return o && o->examined;
}

static void on_mapping(const struct mapping *at, void *arg)
{
	struct scan *scan = arg;
	const struct mmap_record *r = scan->record;
	struct mapping m = *at;
	struct object *o;

	/* the process's other mappings have records of their own */
	if (r && (r->start < m.start || r->start >= m.end))
		return;
	m.time = scan->now;
	if (!r && !is_known(scan->s, &m) && !shares__may(scan->s, m.uid, m.pid, scan->now, !scan->late))
		return;
	o = mapped(scan->s, &m, scan->now);
	if (r)
		scan->found = o;
}

const struct program *objects__vma_program(struct session *s)
{
	return probes__program(&s->embedded.probes, "core_vmas");
}

/* Of one process; one about which the kernel does not answer is left out from then on. */
static int scan_process(struct session *s, u32 pid, struct scan *scan)
{
	int err = process__is_hung(s, pid) ? -ETIMEDOUT :
					     vmas__scan(s->attacher, objects__vma_program(s), pid, on_mapping, scan);

	if (err == -ETIMEDOUT)
		process__set_hung(s, pid);
	return err;
}

/* One after the other, as one of them keeps the kernel from answering about all. */
static int scan_each(struct session *s, struct scan *scan)
{
	char *text, *next;
	size_t len;
	int err = attacher__processes(s->attacher, &text, &len);

	for (next = err ? NULL : text; next && *next && !session__is_stopping(s) && !attacher__stuck(s->attacher);
	     next++) {
		scan_process(s, (u32)strtoul(next, &next, 10), scan);
		if (!*next)
			break;
	}
	if (!err)
		free(text);
	return err;
}

static int scan(struct session *s, u32 pid)
{
	struct scan scan = { .s = s, .now = session__now(s) };
	int err;

	if (pid)
		return scan_process(s, pid, &scan);
	err = vmas__scan(s->attacher, objects__vma_program(s), 0, on_mapping, &scan);
	return err == -ETIMEDOUT ? scan_each(s, &scan) : err;
}

void session__look_again(struct session *s, const char *family)
{
	const struct schema_family *f = s ? schema__family(s->schema, family) : NULL;

	if (f)
		s->objects->again |= FAMILY_BIT(f->id);
}

static void forget_no(const void *node, VISIT which, void *arg)
{
	struct object *o = *(struct object *const *)node;
	const u32 *again = arg;

	if ((which == postorder || which == leaf) && (o->families & *again) != *again && !o->resting)
		o->examined = false;
}

/* For all users: nothing that comes after it is to be charged to the last of them. */
static int look_again(struct session *s)
{
	int err;

	if (!s->objects->again)
		return 0;
	twalk_r(s->objects->by_inode, forget_no, &s->objects->again);
	s->objects->again = 0;
	err = scan(s, 0);
	shares__settle(s);
	return err;
}

int objects__scan(struct session *s, u32 pid)
{
	int err = scan(s, pid);

	shares__settle(s);
	return err ? err : look_again(s);
}

void objects__scan_late(struct session *s, u32 pid, u64 since)
{
	struct scan scan = { .s = s, .now = since, .late = true };

	scan_process(s, pid, &scan);
}

static struct mapping mapping_of(const struct mmap_record *r)
{
	return (struct mapping){
		.pid = r->pid,
		.start = r->start,
		.end = r->start + r->len,
		.offset = r->offset,
		.path = r->path,
		.dev = ((u64)r->maj << 20) | r->min,
		.ino = r->ino,
		.generation = r->generation,
		.time = r->time,
	};
}

static void mapped_by_the_gone(struct session *s, const struct mapping *m)
{
	struct object *o = mapped(s, m, m->time);

	/* it may have been a library that a family probes */
	if ((!o || !o->examined) && !process__is_foreign(s, m->pid))
		losses__add_of(s, m->pid, 0, LOSS_MMAP, 1, m->time, session__now(s), 0);
}

/*
 * On overlayfs a record has the overlay's own numbers, and the same ones before and after a file is copied up:
 * such a mapping is examined each time. A record with an object's numbers is of no overlay, as no object has those
 * of one.
 */
static void on_record(const struct mmap_record *r, void *arg)
{
	struct session *s = arg;
	struct scan scan = { .s = s, .now = r->time, .record = r };
	struct mapping m;
	struct object *o;

	if (!r->ino || r->pid == (u32)getpid())
		return; /* vdso, anonymous */
	m = mapping_of(r);
	o = objects__find(s, &m);
	if (o && o->examined) {
		mapped(s, &m, r->time);
		return;
	}
	/* its mappings are not examined, and a scan takes time for each of them */
	if (s->args->one_user && process__is_foreign(s, r->pid))
		return;
	if (!shares__may(s, shares__user(s, r->pid), r->pid, r->time, true))
		return;
	scan_process(s, r->pid, &scan);
	/* the mapping is not there any more: its record is all there is to go by */
	if (!scan.found || !scan.found->examined)
		mapped_by_the_gone(s, &m);
}

void objects__follow(struct session *s)
{
	u64 before = s->followed, lost = mmaps__drain(s->mmaps, on_record, s), took;

	shares__settle(s);
	s->followed = session__now(s);
	look_again(s);
	if (lost)
		losses__add(s, 0, LOSS_MMAP, lost, before, s->followed, 0);
	s->objects->missed |= lost > 0;
	if (!s->objects->missed || s->followed < s->objects->next_scan)
		return;
	/* what the lost records would have said is in the mappings themselves, unless they are gone again */
	s->objects->missed = false;
	objects__scan(s, 0);
	took = session__now(s) - s->followed;
	s->objects->next_scan = s->followed + (took * SCAN_PART < SCAN_RARELY ? took * SCAN_PART : SCAN_RARELY);
}

/* sonde maps the file itself for a moment, as that shows the backing inode, wherever the file is. */
static void on_own_mapping(const struct mapping *at, void *arg)
{
	struct scan *scan = arg;
	struct mapping m = *at;
	struct object *o;

	if (m.start != scan->record->start)
		return;
	m.path = scan->record->path;
	o = objects__find(scan->s, &m);
	if (!o)
		o = new_object(scan->s, &m, scan->now);
	if (o && !o->examined) {
		o->is_preattached = true;
		examine(scan->s, o, &m);
		o->pid = 0;
	}
}

int objects__preattach(struct session *s, const char *path, int fd)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct mmap_record r = { .start = (uintptr_t)map, .path = path };
	struct scan scan = { .s = s, .now = session__now(s), .record = &r };
	int err;

	if (map == MAP_FAILED)
		return -errno;
	err = vmas__scan(s->attacher, objects__vma_program(s), getpid(), on_own_mapping, &scan);
	munmap(map, page);
	return err;
}

struct named {
	u16 id;
	const char *path;
};

static void visit_id(const void *node, VISIT which, void *arg)
{
	const struct object *o = *(struct object *const *)node;
	struct named *n = arg;

	if ((which == postorder || which == leaf) && o->id == n->id)
		n->path = o->path;
}

const char *objects__path(const struct objects *o, u16 id)
{
	struct named n = { .id = id };

	if (o && id)
		twalk_r(o->by_inode, visit_id, &n);
	return n.path;
}
