// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/own_tids.h"
#include "record/family.h"
#include "record/parts.h"

#define TIDS_MAX 16384

struct own_tid {
	u32 pid, tid; /* tid: in the process's own pid namespace */
};

void own_tids__init(struct own_tids *o)
{
	recent__init(&o->tids, sizeof(struct own_tid), sizeof(u32), TIDS_MAX);
}

void own_tids__free(struct own_tids *o)
{
	recent__free(&o->tids);
}

void session__note_own_tid(struct session *s, u32 pid, u32 tid, u32 own_tid)
{
	u32 *slot = tid != own_tid ? recent__get(&s->own_tids.tids, &(struct own_tid){ pid, own_tid }) : NULL;

	if (slot)
		*slot = tid;
}

u32 session__tid_of(struct session *s, u32 pid, u32 own_tid)
{
	const u32 *tid = recent__find(&s->own_tids.tids, &(struct own_tid){ pid, own_tid });

	return tid ? *tid : own_tid;
}

bool session__translate_tid(struct session *s, struct event *e, u32 size)
{
	if (e->flags & EVENT_OWN_TID)
		e->tid = session__tid_of(s, e->pid, e->tid);
	e->flags &= (u16)~EVENT_OWN_TID;
	return true;
}
