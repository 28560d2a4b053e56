// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts mappings of files that were not examined before the process or the recording ended. */
#include "attach/vmas.h"
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "util/path.h"

#include <string.h>

/*
 * Returns the probed object that a process which has ended probably mapped through an overlay: one with the same file
 * name. NULL: there is none, or the mapping's device is that of an object, so that it is no overlay.
 */
static struct object *find_namesake(struct objects *all, const struct mapping *m)
{
	struct object *found = NULL;

	MAP_EACH(struct object *o, &all->by_inode) {
		if (o->examined && o->key.dev == m->dev)
			return NULL;
		if (o->examined && o->live && !strcmp(path__file_name(o->path), path__file_name(m->path)))
			found = o;
	}
	return found;
}

static void count_missed(struct session *s, const struct mapping *m, u64 until)
{
	losses__add_of(s, m->pid, 0, LOSS_MMAP, 1, m->time, until, 0);
}

void missed__count_ended(struct session *s, const struct mapping *m)
{
	struct object *o;

	/* no file is examined while the recording stops: then the name decides whether a family probes it */
	if (!process__was_selected(s, m->pid) || (session__is_stopping(s) && !session__program_for(s, m->path)))
		return;
	o = find_namesake(s->objects, m);
	if (o)
		preattach__mapped(s, o, m);
	else
		count_missed(s, m, session__now(s));
}

struct lookup {
	struct session *s;
	const struct mapping *mapping;
	struct object *object;
	bool found; /* the mapping */
};

static void on_mapping(const struct mapping *m, void *arg)
{
	struct lookup *l = arg;

	if (l->mapping->start < m->start || l->mapping->start >= m->end)
		return;
	l->found = true;
	l->object = objects__find(l->s->objects, m);
}

/* A scan shows the backing inode of a mapping whose record has the inode of an overlay. */
static void count_unless_probed(struct session *s, const struct mapping *m)
{
	struct lookup l = { .s = s, .mapping = m };

	if (!process__is_hung(s, m->pid))
		process__note_answer(s, m->pid,
				     vmas__scan(s->attacher, objects__vma_program(s), m->pid, on_mapping, &l));
	if (!l.found)
		l.object = find_namesake(s->objects, m);
	if (l.object && l.object->examined)
		preattach__mapped(s, l.object, m);
	else
		count_missed(s, m, s->time.stopped);
}

static void on_last_record(const struct mmap_record *r, void *arg)
{
	struct session *s = arg;
	struct mapping m;
	struct object *o;

	if (!objects__mapping(r, &m) || r->time >= s->time.stopped)
		return;
	o = objects__find(s->objects, &m);
	if (o && o->examined)
		preattach__mapped(s, o, &m);
	else if (session__program_for(s, r->path) && process__was_selected(s, r->pid))
		count_unless_probed(s, &m);
}

void missed__finish(struct session *s)
{
	u64 lost = mmaps__drain(s->mmaps, on_last_record, s);

	if (lost)
		losses__add(s, 0, LOSS_MMAP, lost, objects__known_until(s), s->time.stopped, 0);
}
