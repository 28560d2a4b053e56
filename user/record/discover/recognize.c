// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Warnings about files, and files with the name of a library that a family probes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/discover/objects.h"
#include "record/parts.h"
#include "util/array.h"

#define HELD_MAX 8 /* a file may be overwritten again and again */

static void warn(struct session *s, const struct object *o, const struct held_warning *w)
{
	if (w->is_left_out) {
		session__left_out(s, o->path, o->account, w->text);
		return;
	}
	session__warn_of(s, o->account, "%s", w->text);
	s->not_attached += w->is_lack;
}

/* Warns, now or later. Takes the text. */
static void warn_if_wanted(struct session *s, struct object *o, struct held_warning w)
{
	bool is_held = false;

	/* no process maps yet what is probed ahead, but the program that will run does */
	if (o->is_wanted || o->is_preattached)
		warn(s, o, &w);
	else
		is_held = o->n_held < HELD_MAX && array__push(o->held, o->n_held, w);
	if (!is_held)
		free(w.text);
}

void object__warn(struct session *s, struct object *o, bool is_lack, const char *fmt, ...)
{
	struct held_warning w = { .is_lack = is_lack };
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&w.text, fmt, ap);
	va_end(ap);
	if (n >= 0)
		warn_if_wanted(s, o, w);
}

void object__leave_out(struct session *s, struct object *o, const char *why)
{
	struct held_warning w = { .text = strdup(why), .is_left_out = true };

	if (w.text)
		warn_if_wanted(s, o, w);
}

void object__want(struct session *s, struct object *o)
{
	o->is_wanted = true;
	for (u32 i = 0; i < o->n_held; i++) {
		warn(s, o, &o->held[i]);
		free(o->held[i].text);
	}
	free(o->held);
	o->held = NULL;
	o->n_held = 0;
}

void object__note_unlike(struct session *s, struct object *o, const struct program *p, bool other_soname)
{
	object__warn(
		s, o, other_soname,
		"%s: family %s: not probed: it has the file name of %s, but %s. If it is that library, set its DT_SONAME with patchelf --set-soname",
		o->path, p->family->name, p->section.library,
		other_soname ? "another DT_SONAME" : "neither its DT_SONAME nor any function that it exports");
}

const struct program *session__program_for(const struct session *s, const char *path)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && section__matches_library(&p->section, path))
			return p;
	return NULL;
}

void object__refuse(struct session *s, struct object *o, const char *why)
{
	const struct program *program = session__program_for(s, o->path);

	if (program)
		object__warn(s, o, true, "%s: family %s: not traced: %s", o->path, program->family->name, why);
}
