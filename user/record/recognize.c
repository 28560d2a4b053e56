// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which library an object is, or holds: by its contents, whatever path it is mapped under. */
#include "record/objects.h"

#include "attach/library.h"

#include <stdio.h>
#include <string.h>

/* How NVIDIA's static libraries begin the names of what they don't export: libcudart.so's are libcudart_static_HASH. */
bool object__holds_copy(const struct object *o, const char *library)
{
	char text[80];

	snprintf(text, sizeof(text), "%.*s_static_", (int)strcspn(library, "."), library);
	return elf__names_hold(o->elf, text);
}

/* By what the file holds. One that only goes by the library's name is named, as its calls will not be seen. */
bool object__is_library(struct session *s, const struct object *o, const struct schema_family *f,
			const struct section *section)
{
	enum library_match match = library__match(o->elf, &s->embedded.probes, section->library);

	if (match == LIBRARY_YES || !section__matches_library(section, o->path) || o->ahead ||
	    object__holds_copy(o, section->library))
		return match == LIBRARY_YES;
	session__warn(
		s,
		"%s: family %s: not probed: it has the file name of %s, but %s. If it is that library all the same: "
		"patchelf --set-soname gives it its name",
		o->path, f->name, section->library,
		match == LIBRARY_OTHER ? "another DT_SONAME" :
					 "neither its DT_SONAME nor any function that it exports");
	s->not_attached += match == LIBRARY_OTHER;
	return false;
}

static const struct program *probed_by(struct session *s, const struct object *o)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *program = &s->embedded.probes.programs[i];

		if (program->enabled && section__matches_library(&program->section, o->path))
			return program;
	}
	return NULL;
}

bool object__is_probed_library(struct session *s, const struct object *o)
{
	return probed_by(s, o);
}

void object__refuse(struct session *s, const struct object *o, const char *why)
{
	const struct program *program = probed_by(s, o);

	if (!program)
		return;
	session__warn(s, "%s: family %s: not traced: %s", o->path, program->family->name, why);
	s->not_attached++;
}
