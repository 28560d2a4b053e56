// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stores all mapped files with code, once each by backing inode: whether a family probes the file, its sites, and since
 * when it is probed.
 */
#include "record/discover/objects.h"

#include "attach/vmas.h"
#include "process/filesystem.h"
#include "record/discover/shares.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/native.h"
#include "record/stacks/tasks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * Processes that map files very fast cause lost mmap records, which require scans of all processes: these scans take
 * at most 1/20 of the time.
 */
#define SCAN_PART   20
#define SCAN_RARELY 20000000000ULL /* ns: the longest interval, even on a busy machine */

/* How long a start waits for files that users other than root may write. */
#define AWAIT_NS      1500000000ULL
#define AWAIT_STEP_US 5000

int objects__new(struct session *s)
{
	s->objects = calloc(1, sizeof(*s->objects));
	if (!s->objects)
		return -ENOMEM;
	map__init(&s->objects->by_inode, sizeof(struct inode_key), sizeof(struct object));
	s->objects->changed_fd = -1;
	objects__bound(s->objects);
	return 0;
}

void object__free(struct object *o)
{
	object__forget_file(o);
	for (u32 i = 0; i < o->n_held; i++)
		free(o->held[i].text);
	free(o->held);
	free(o->path);
}

void objects__free(struct objects *o)
{
	if (!o)
		return;
	if (o->changed_fd >= 0)
		close(o->changed_fd);
	MAP_EACH(struct object *object, &o->by_inode)
		object__free(object);
	map__free(&o->by_inode);
	free(o);
}

void objects__scan_soon(struct objects *o)
{
	o->missed = true;
}

u32 objects__probed(const struct objects *o)
{
	return o ? o->probed : 0;
}

static struct inode_key key_of(const struct mapping *m)
{
	return (struct inode_key){ .dev = m->dev, .ino = m->ino, .generation = m->generation };
}

static struct object *new_object(struct session *s, const struct mapping *m, u64 first)
{
	struct inode_key key = key_of(m);
	struct object *o = map__get(&s->objects->by_inode, &key);

	if (!o)
		return NULL;
	*o = (struct object){ .key = key, .first = first, .fd = -1, .path = strdup(m->path) };
	if (o->path)
		return o;
	map__remove(&s->objects->by_inode, &key);
	return NULL;
}

/* Returns an id that no object has; after thousands of objects ids are reused. 0: all are in use. */
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
 * Only an object that a family probes gets an id: the trace and the losses refer to objects by their ids. A file that
 * was overwritten is a new object with a new id.
 */
static void attach_object(struct session *s, struct object *o, const struct examination *x)
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
		object__leave_out(s, o, "its tables exceed sonde's limit of memory for files");
}

static int open_mapped(struct session *s, const struct mapping *m)
{
	if (session__is_stopping(s))
		return -EINTR;
	/* FUSE's number is ambiguous: the opener finds out whether such a file system is remote */
	if (!s->args->remote_files && m->magic != FILESYSTEM_FUSE && filesystem__remote(m->magic))
		return -EREMOTE;
	return hung__may_ask(s, m->uid, false) ? attacher__open(s->attacher, m) : -EBUSY;
}

static void refuse_object(struct session *s, struct object *o)
{
	/* a file found on disk is reported when the first process maps it */
	if (o->is_preattached)
		o->examined = o->is_preattached = false;
	else
		object__refuse(s, o, "not an ELF file that can be read");
}

void object__examined(struct session *s, struct object *o, const struct mapping *m, struct examination *x, int err)
{
	if (!err && *x->note && !o->debug_sought)
		object__warn(s, o, false, "%s: %s", o->path, x->note);
	o->debug_sought |= !err && *x->note;
	if (err == -ENOEXEC)
		refuse_object(s, o);
	else if (!err)
		object__store_facts(s, o, x);
	if (!err) {
		attach_object(s, o, x);
		o->rejected = ~o->families;
	}
	examination__free(x);
	if (o->live)
		object__watch(s, o);
	/* only runtimes are examined again, when another process maps them */
	if (!o->families)
		object__forget_file(o);
}

/* Opens the object and lets the families probe it; tried again at the next mapping if the process had ended already. */
static void examine_object(struct session *s, struct object *o, const struct mapping *m)
{
	static struct examination x; /* large */
	int err;

	if (o->fd < 0)
		o->fd = open_mapped(s, m);
	if (o->fd < 0 && o->fd != -ENOEXEC && o->fd != -EREMOTE && o->fd != -EACCES && o->fd != -ETIMEDOUT)
		return;
	o->examined = true;
	o->pid = m->pid;
	o->account = shares__owner(s->shares, o->fd, m->uid);
	if (o->fd == -EREMOTE || o->fd == -EACCES || o->fd == -ETIMEDOUT) {
		if (o->fd != -ETIMEDOUT)
			remote__refuse(s, o, m->magic);
		else
			object__refuse_hung(s, o, m->uid);
		o->fd = -1;
		return;
	}
	/* watch files that were overwritten before already while they are examined and probed */
	if (o->fd >= 0 && o->changes)
		object__watch(s, o);
	shares__examined(s->shares);
	memset(&x, 0, sizeof(x));
	err = o->fd < 0 ? -ENOEXEC : examine__object(s, o, m, s->objects->hints, &x);
	if (err == -EBUSY) {
		if (!o->is_preattached)
			shares__later(s, m->uid, m->pid, m->time);
		o->examined = o->is_preattached = false;
	} else if (err != -EINPROGRESS) {
		object__examined(s, o, m, &x, err);
	}
}

struct object *objects__find(struct objects *o, const struct mapping *m)
{
	struct inode_key key = key_of(m);

	return map__find(&o->by_inode, &key);
}

static struct object *take_mapping(struct session *s, const struct mapping *m, u64 first)
{
	struct object *o = objects__find(s->objects, m);

	/*
	 * files that only other users map are not probed; if a process later becomes one of this user's, it is
	 * scanned again
	 */
	if (s->args->one_user && !process__is_passed_on(s, m->pid))
		return o;
	if (!o)
		o = new_object(s, m, first);
	if (!o)
		return NULL;
	if (process__is_passed_on(s, m->pid))
		object__want(s, o);
	if (!o->examined)
		examine_object(s, o, m);
	preattach__mapped(s, o, m);
	if (o->remote)
		remote__note_process(s, o, m);
	if (o->families)
		process__set(s, m->pid, PROCESS_RUNTIME);
	s->objects->probed += !o->mapped && o->live;
	o->mapped = o->live;
	o->used = m->time;
	o->unmapped = false;
	if (!process__is_passed_on(s, m->pid))
		return o;
	if (s->native)
		native__mapped(s->native, m);
	tasks__mapped(s, m);
	hosts__mapped(s, o, m);
	return o;
}

struct scan {
	struct session *s;
	u64 now;
	bool is_counted; /* the process's new files were counted as not examined before */
	/* the mmap record whose object is searched, NULL: none; and the object */
	const struct mmap_record *record;
	struct object *object;
};

static bool is_known(struct session *s, const struct mapping *m)
{
	const struct object *o = objects__find(s->objects, m);

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
	preattach__note(scan->s, m.path);
	if (!r && !is_known(scan->s, &m) && !shares__may(scan->s, m.uid, m.pid, scan->now, !scan->is_counted))
		return;
	o = take_mapping(scan->s, &m, scan->now);
	if (r)
		scan->object = o;
}

const struct program *objects__vma_program(struct session *s)
{
	return probes__program(&s->embedded.probes, "core_vmas");
}

/* Scans one process; a process about which the kernel does not answer is skipped from then on. */
static int scan_process(struct session *s, u32 pid, struct scan *scan)
{
	return process__note_answer(s, pid,
				    process__is_hung(s, pid) ?
					    -ETIMEDOUT :
					    vmas__scan(s->attacher, objects__vma_program(s), pid, on_mapping, scan));
}

/* Scans one process after the other, because one process that hangs blocks a scan of all. */
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

static int scan_processes(struct session *s, u32 pid)
{
	struct scan scan = { .s = s, .now = session__now(s) };
	int err;

	if (pid)
		return scan_process(s, pid, &scan);
	attacher__limit(s->attacher, OPENER_MS);
	/* a process that hung would make the scan of all hang again */
	err = hung__are_processes(&s->hung) ? -ETIMEDOUT :
					      vmas__scan(s->attacher, objects__vma_program(s), 0, on_mapping, &scan);
	return err == -ETIMEDOUT ? scan_each(s, &scan) : err;
}

void objects__hint(struct objects *o, u8 family)
{
	if (!(o->hints & FAMILY_BIT(family)))
		o->again |= FAMILY_BIT(family);
	o->hints |= FAMILY_BIT(family);
}

/* Scans all processes for objects whose is_runtime is to be called again. Later work is charged to no user. */
static int rescan_hinted(struct session *s)
{
	u64 again = s->objects->again;
	int err;

	if (!again)
		return 0;
	MAP_EACH(struct object *o, &s->objects->by_inode)
		if ((o->families & again) != again && !o->resting) {
			o->examined = false;
			o->rejected &= ~again;
		}
	s->objects->again = 0;
	err = scan_processes(s, 0);
	shares__settle(s);
	return err;
}

int objects__scan(struct session *s, u32 pid)
{
	int err = scan_processes(s, pid);

	shares__settle(s);
	return err ? err : rescan_hinted(s);
}

void objects__await(struct session *s)
{
	u64 end = session__now(s) + AWAIT_NS, now;

	while ((now = session__now(s)) < end && !session__is_stopping(s) &&
	       (examiner__is_pending(s->examiner) || shares__are_waiting(s->shares))) {
		if (examiner__is_pending(s->examiner)) {
			usleep(AWAIT_STEP_US);
			drain__copy(s);
			examiner__resume(s);
		} else {
			shares__tick(s, now);
		}
	}
	if (s->objects->missed)
		objects__scan(s, 0);
	s->objects->missed = false;
}

void objects__scan_late(struct session *s, u32 pid, u64 since)
{
	struct scan scan = { .s = s, .now = since, .is_counted = true };

	scan_process(s, pid, &scan);
}

bool objects__mapping(const struct mmap_record *r, struct mapping *m)
{
	*m = (struct mapping){
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
	return r->ino && r->pid != (u32)getpid();
}

static void take_mapping_of_ended(struct session *s, const struct mapping *m)
{
	struct object *o = take_mapping(s, m, m->time);

	/* the file may have been a library that a family probes */
	if (!o || !o->examined)
		missed__count_ended(s, m);
}

/*
 * On overlayfs a record has the inode number of the overlay, and the same before and after a copy-up: such a mapping
 * is examined each time. A record whose numbers equal those of an object is not on an overlay, because no object has
 * numbers of an overlay.
 */
static void on_record(const struct mmap_record *r, void *arg)
{
	struct session *s = arg;
	struct scan scan = { .s = s, .now = r->time, .record = r };
	struct mapping m;
	struct object *o;

	if (!objects__mapping(r, &m))
		return;
	o = objects__find(s->objects, &m);
	if (o && o->examined) {
		take_mapping(s, &m, r->time);
		return;
	}
	/* mappings of such a process are not examined, and each would cost a scan */
	if (s->args->one_user && !process__was_selected(s, r->pid))
		return;
	m.uid = session__user(s, r->pid);
	if (!shares__may(s, m.uid, r->pid, r->time, true))
		return;
	scan_process(s, r->pid, &scan);
	/* the mapping has been removed again: only its record is known */
	if (!scan.object || !scan.object->examined)
		take_mapping_of_ended(s, &m);
}

u64 objects__known_until(const struct session *s)
{
	return s->objects->mappings_until ? s->objects->mappings_until : s->time.started;
}

void objects__follow(struct session *s)
{
	u64 before = objects__known_until(s), lost = mmaps__drain(s->mmaps, on_record, s), took;

	shares__settle(s);
	s->objects->mappings_until = session__now(s);
	rescan_hinted(s);
	if (lost)
		losses__add(s, 0, LOSS_MMAP, lost, before, s->objects->mappings_until, 0);
	s->objects->missed |= lost > 0;
	if (!s->objects->missed || s->objects->mappings_until < s->objects->next_scan)
		return;
	/* the scan finds the mappings of the lost records, except those that were removed again */
	s->objects->missed = false;
	objects__scan(s, 0);
	took = session__now(s) - s->objects->mappings_until;
	s->objects->next_scan =
		s->objects->mappings_until + (took * SCAN_PART < SCAN_RARELY ? took * SCAN_PART : SCAN_RARELY);
}

/* sonde maps the file itself for a moment: the mapping shows the backing inode, on any file system. */
static void on_own_mapping(const struct mapping *at, void *arg)
{
	struct scan *scan = arg;
	struct mapping m = *at;
	struct object *o;

	if (m.start != scan->record->start)
		return;
	m.path = scan->record->path;
	o = objects__find(scan->s->objects, &m);
	if (!o)
		o = new_object(scan->s, &m, scan->now);
	if (o && !o->examined) {
		o->is_preattached = true;
		examine_object(scan->s, o, &m);
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

struct copy {
	u64 start;
	const struct object *o;
	bool differs;
};

static void compare_inode(const struct mapping *m, void *arg)
{
	struct copy *c = arg;

	if (m->start == c->start)
		c->differs = m->dev != c->o->key.dev || m->ino != c->o->key.ino;
}

bool object__is_copied_up(struct session *s, const struct object *o)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct copy c = { .o = o };
	struct statfs fs;
	void *map;

	if (fstatfs(o->fd, &fs) || fs.f_type != FILESYSTEM_OVERLAY)
		return false;
	map = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, o->fd, 0);
	if (map == MAP_FAILED)
		return false;
	c.start = (uintptr_t)map;
	vmas__scan(s->attacher, objects__vma_program(s), getpid(), compare_inode, &c);
	munmap(map, page);
	return c.differs;
}

const char *objects__path(const struct objects *o, u16 id)
{
	if (!o || !id)
		return NULL;
	MAP_EACH(const struct object *object, &o->by_inode)
		if (object->id == id)
			return object->path;
	return NULL;
}
