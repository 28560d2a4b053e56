// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files whose examination takes long. Their children work side by side, one for each account, while the worker
 * continues with other files and with the rings.
 */
#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/examine/children.h"
#include "record/examine/examine.h"
#include "record/parts.h"

#include <errno.h>
#include <stdlib.h>

#define CHARGED_MS_MAX 2000 /* for one file, because a busy machine makes it take longer than its CPU time */

int pending_file__leave(struct session *s, struct child *c, const struct pending_file *p)
{
	c->pending = malloc(sizeof(*c->pending));
	if (!c->pending)
		return -ENOMEM;
	*c->pending = *p;
	/* the caller's path is gone by then */
	c->pending->m.path = p->object->path;
	p->object->pending = true;
	return -EINPROGRESS;
}

bool pending_file__is_of(const struct examiner *e, u32 account)
{
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		if (e->children[i].pending && e->children[i].pending->account == account)
			return true;
	return false;
}

bool examiner__is_pending(const struct examiner *e)
{
	for (u32 i = 0; e && i < CHILDREN_MAX; i++)
		if (e->children[i].pending)
			return true;
	return false;
}

/* Takes the file from its child, and charges the time. */
static struct pending_file *take_file(struct session *s, struct child *c)
{
	struct pending_file *p = c->pending;
	u64 ms;

	c->pending = NULL;
	p->object->pending = false;
	ms = message__now() - p->begun;
	shares__charge(s, p->account, (ms < CHARGED_MS_MAX ? ms : CHARGED_MS_MAX) * 1000000);
	return p;
}

static void complete_file(struct session *s, struct child *c, int err)
{
	struct pending_file *p = take_file(s, c);

	examine__end(s, c, p->uid, FILE_FIND, &p->x, err);
	if (err)
		examine__note_failure(s, p->object, err);
	object__examined(s, p->object, &p->m, &p->x, err ? err : p->x.end.result);
	/* processes that mapped the file meanwhile are not known to the families */
	if (p->object->families)
		objects__scan_soon(s->objects);
	free(p);
}

void pending_file__abandoned(struct session *s, struct child *c)
{
	complete_file(s, c, -ETIMEDOUT);
}

static void resume_file(struct session *s, struct child *c)
{
	struct message_wait wait = {};
	int err = 0;

	while (!err && message__pending(c->sandbox.sock))
		err = examine__take_part(s, c, c->pending->object, &c->pending->m, c->pending->size, &c->pending->x,
					 &wait);
	if (!err && message__now() - c->pending->begun > (u64)c->pending->limit_ms)
		err = -ETIMEDOUT;
	if (err)
		complete_file(s, c, err < 0 ? err : 0);
}

void examiner__resume(struct session *s)
{
	for (u32 i = 0; s->examiner && i < CHILDREN_MAX; i++)
		if (s->examiner->children[i].pending)
			resume_file(s, &s->examiner->children[i]);
}

void examiner__cancel(struct session *s, struct object *o)
{
	for (u32 i = 0; i < CHILDREN_MAX; i++) {
		struct child *c = &s->examiner->children[i];
		struct pending_file *p = c->pending && c->pending->object == o ? take_file(s, c) : NULL;

		if (!p)
			continue;
		child__end(c);
		examination__free(&p->x);
		free(p);
	}
}
