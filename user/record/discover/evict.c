// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Removes objects that no process maps any more. An object without probes takes a few hundred bytes and saves a
 * second examination: if there are too many, the least recently mapped ones are removed. An object with probes has an
 * open file, links and breakpoints. It is removed when the file is deleted, because only processes that have it open
 * can map it then. A file that still has a name stays probed for the next process that maps it, unless there are too
 * many.
 *
 * Only a scan of all mappings shows which objects are mapped. One scan may miss a process that forks during it, so an
 * object must be missing from two. A mapping made after a scan is reported by a record, which is read later and
 * creates the object again.
 */
#include "attach/vmas.h"
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "record/stacks/python.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OBJECTS_MAX  4096 /* without probes */
#define ATTACHED_MAX 4096
/* above this number, files that no process maps lose their probes even if they still have a name */
#define ATTACHED_UNMAPPED_MAX 1024
#define OBJECTS_FEW	      64 /* for tests */
#define ATTACHED_FEW	      64
#define SWEEP_EVERY	      5000000000ULL /* ns */
#define SWEEP_RARELY	      20000000000ULL /* ns: the longest interval, even on a busy machine */
#define SWEEP_SHARE	      20 /* an interval is so many times as long as a scan: there may be a million mappings */

void objects__bound(struct objects *o)
{
	bool few = session__test_switch("small-tables");

	o->max = few ? OBJECTS_FEW : OBJECTS_MAX;
	o->attached_max = few ? ATTACHED_FEW : ATTACHED_MAX;
}

static u32 attached_unmapped_max(const struct objects *o)
{
	return o->attached_max == ATTACHED_MAX ? ATTACHED_UNMAPPED_MAX : o->attached_max / 2;
}

static bool is_deleted(const struct object *o)
{
	struct stat st;

	return o->fd >= 0 && !fstat(o->fd, &st) && !st.st_nlink;
}

struct list {
	struct object **list;
	u32 n;
};

static int by_use(const void *a, const void *b)
{
	const struct object *x = *(struct object *const *)a, *y = *(struct object *const *)b;

	return x->used < y->used ? -1 : x->used > y->used;
}

/*
 * Returns the objects with probes or with an open file, or the others; the least recently mapped ones first. The caller
 * frees the list.
 */
static struct list list_objects(const struct objects *all, bool attached)
{
	struct list l = { .list = calloc(all->by_inode.n + 1, sizeof(struct object *)) };

	MAP_EACH(struct object *o, &all->by_inode)
		if (l.list && !o->pending && (o->id || o->fd >= 0) == attached)
			l.list[l.n++] = o;
	if (l.n)
		qsort(l.list, l.n, sizeof(struct object *), by_use);
	return l;
}

/* Removes an object whose probes are detached. */
static void evict_object(struct session *s, struct object *o)
{
	struct inode_key key = o->key;

	if (o->id) {
		losses__store_path(s->losses, o->id, o->path);
		site_links__forget(&s->site_links, o->id);
		s->objects->attached--;
		s->objects->evicted_attached++;
	}
	object__unwatch(s, o);
	/* the file is no longer watched and may be overwritten in place, so what is known of its Python is dropped */
	python__forget_file(s, o->key.dev, o->key.ino, o->key.generation);
	object__free(o);
	map__remove(&s->objects->by_inode, &key);
	s->objects->evicted++;
}

/* Removes half of the objects without probes, the least recently mapped ones. */
static void evict_plain(struct session *s)
{
	struct list l = list_objects(s->objects, false);

	for (u32 i = 0; l.n > s->objects->max && i < l.n / 2; i++)
		evict_object(s, l.list[i]);
	free(l.list);
}

static void mark_mapped(const struct mapping *m, void *arg)
{
	struct session *s = arg;
	struct object *o = objects__find(s->objects, m);

	if (o)
		o->scan = s->objects->scan;
}

static bool is_candidate(const struct objects *all, const struct object *o)
{
	return all->attached > attached_unmapped_max(all) || is_deleted(o);
}

/*
 * Detaching waits about 50 ms, for many objects together as for one. When their probes are gone, the records that name
 * an object are handled before it is evicted.
 */
static void evict_batch(struct session *s, struct object **some, u32 n)
{
	u32 ids[ATTACHER_DROPS_MAX], n_ids = 0;
	int err = 0;

	for (u32 i = 0; i < n; i++)
		if (some[i]->id)
			ids[n_ids++] = some[i]->id;
	drain__rings(s);
	if (n_ids)
		err = attacher__drop_all(s->attacher, ids, n_ids);
	drain__all(s);
	/* an object that still has probes is kept, because events name it */
	for (u32 i = 0; i < n; i++)
		if (!err || !some[i]->id)
			evict_object(s, some[i]);
}

static void evict_unmapped(struct session *s, struct list *l)
{
	struct object *some[ATTACHER_DROPS_MAX];
	u32 n = 0;

	for (u32 i = 0; i < l->n; i++) {
		struct object *o = l->list[i];
		bool mapped = o->scan == s->objects->scan;

		if (mapped || !o->unmapped || !is_candidate(s->objects, o)) {
			o->unmapped = !mapped;
			continue;
		}
		some[n++] = o;
		if (n < ATTACHER_DROPS_MAX)
			continue;
		evict_batch(s, some, n);
		n = 0;
	}
	if (n)
		evict_batch(s, some, n);
}

/* Returns the duration of the scan in ns. */
static u64 sweep_objects(struct session *s)
{
	struct list l = list_objects(s->objects, true);
	u64 began = session__now(s), took = 0;
	bool any = false;

	for (u32 i = 0; i < l.n; i++) {
		object__end_rest(l.list[i]);
		any |= is_candidate(s->objects, l.list[i]);
	}
	if (any) {
		int err;

		s->objects->scan++;
		attacher__limit(s->attacher, OPENER_MS);
		err = vmas__scan(s->attacher, objects__vma_program(s), 0, mark_mapped, s);
		took = session__now(s) - began;
		if (!err)
			evict_unmapped(s, &l);
	}
	free(l.list);
	return took;
}

void objects__tick(struct session *s, u64 now)
{
	u64 took;

	if (s->objects->by_inode.n - s->objects->attached > s->objects->max)
		evict_plain(s);
	if (now < s->objects->next_sweep)
		return;
	took = sweep_objects(s);
	took *= SWEEP_SHARE;
	s->objects->next_sweep = now + (took < SWEEP_EVERY ? SWEEP_EVERY : took > SWEEP_RARELY ? SWEEP_RARELY : took);
	/* tables that were freed in between leave holes in the heap */
	malloc_trim(1 << 20);
}

void objects__sizes(const struct objects *o, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "files with code",
				 .entries = o->by_inode.n,
				 .max = o->max + o->attached_max,
				 .bytes = map__bytes(&o->by_inode),
				 .evicted = o->evicted },
	   arg);
	fn(&(struct table_size){ .name = "files with probes",
				 .entries = o->attached,
				 .max = o->attached_max,
				 .bytes = o->attached * sizeof(struct file_facts),
				 .evicted = o->evicted_attached },
	   arg);
}
