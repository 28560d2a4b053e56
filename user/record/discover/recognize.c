// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files with the name of a library that a family probes. */
#include "record/discover/objects.h"
#include "record/parts.h"

void object__note_unlike(struct session *s, const struct object *o, const struct program *p, bool other_soname)
{
	session__warn_of(
		s, o->account,
		"%s: family %s: not probed: it has the file name of %s, but %s. If it is that library, set its DT_SONAME with patchelf --set-soname",
		o->path, p->family->name, p->section.library,
		other_soname ? "another DT_SONAME" : "neither its DT_SONAME nor any function that it exports");
	s->not_attached += other_soname;
}

const struct program *session__program_for(const struct session *s, const char *path)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && section__matches_library(&p->section, path))
			return p;
	return NULL;
}

void object__refuse(struct session *s, const struct object *o, const char *why)
{
	const struct program *program = session__program_for(s, o->path);

	if (!program)
		return;
	session__warn_of(s, o->account, "%s: family %s: not traced: %s", o->path, program->family->name, why);
	s->not_attached++;
}
