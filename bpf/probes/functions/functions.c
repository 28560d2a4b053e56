// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of the calls of Python functions, which the shim records (record/shims.c). */
#include "functions.h"

#include "record/family.h"

#define NAMES_MAX   64 /* the last that were recorded; a refusal follows its name */
#define REFUSED_MAX 16 /* messages; report functions has all */

struct functions {
	struct name {
		u64 id;
		u32 pid;
		char text[160];
	} names[NAMES_MAX];
	u32 n_names, n_refused;
};

static const struct shim_form forms[] = {
	[FUNCTION_CALL] = { FORM_SPAN(shim_function_call) },
	[FUNCTION_TEXT] = { FORM_TEXT(shim_function_text) },
	[FUNCTION_NAMED] = { FORM_TEXT(shim_function_named) },
	[FUNCTION_DROPPED] = { FORM_EVENT(shim_function_dropped) },
	[FUNCTION_STATE] = { FORM_TEXT(shim_state) },
};

static const struct shim_user user = {
	.family = "functions",
	.control = "functions_control",
	SHIM_FORMS(forms),
	.state = ID_functions_shim,
	.dropped = ID_functions_dropped,
	.ended_reason = FUNCTION_PROCESS_ENDED,
};

static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	session__request_records(s, &user, facts, m, 1U << SHIM_FUNCTIONS);
}

static void note_name(struct functions *f, const struct functions_text *t, u32 size)
{
	struct name *n = &f->names[f->n_names % NAMES_MAX];

	n->id = t->text_id.number;
	n->pid = t->event.pid;
	shim_user__copy_text(n->text, sizeof(n->text), t->text, size - (u32)sizeof(*t));
	f->n_names++;
}

/* Prints why a function that the user named can't be traced. */
static void note_state(struct session *s, struct functions *f, const struct functions_named *r, u32 size)
{
	char why[160];

	if (r->named.state != FUNCTION_REFUSED || f->n_refused++ >= REFUSED_MAX)
		return;
	shim_user__copy_text(why, sizeof(why), r->why, size - (u32)sizeof(*r));
	for (u32 i = 0; i < NAMES_MAX; i++)
		if (f->names[i].id == r->named.name && f->names[i].pid == r->event.pid)
			session__warn_of(s, session__user(s, r->event.pid), "process %u: %s is not traced: %s",
					 r->event.pid, f->names[i].text, why);
}

static void event(struct session *s, const struct event *e, u32 size)
{
	struct functions *f = session__state(s, EVENT_FAMILY(ID_functions_call));

	if (e->id == ID_functions_text && size > sizeof(struct functions_text))
		note_name(f, (const struct functions_text *)e, size);
	if (e->id == ID_functions_named && size > sizeof(struct functions_named))
		note_state(s, f, (const struct functions_named *)e, size);
	session__note_shim(s, &user, e, size);
}

static const struct family_part parts[] = {
	FAMILY_WHOLE("functions_records"),
	FAMILY_WHOLE("functions_control"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(functions_host) = {
	.name = "functions",
	.parts = parts,
	SHIM_HOST,
	.object_mapped = object_mapped,
	.cut = session__translate_tid,
	.state = sizeof(struct functions),
	.event = event,
};
