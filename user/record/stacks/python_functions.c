// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/python_functions.h"

#include "core/meta.h"
#include "record/family.h"
#include "util/python_library.h"

struct function {
	u32 name, file, line;
};

void python_functions__init(struct python_functions *f, u32 max)
{
	recent__init(&f->ids, sizeof(struct function), sizeof(u32), max);
}

void python_functions__free(struct python_functions *f)
{
	recent__free(&f->ids);
}

u32 python_functions__id(struct session *s, struct python_functions *f, u32 name, u32 file, u32 line)
{
	struct function key = { .name = name, .file = file, .line = line };
	struct meta_code e = { session__event(s, ID_meta_code), .name = name, .file = file, .line = line,
			       .kind = FRAME_PYTHON };
	u32 *id = recent__get(&f->ids, &key);

	if (!id || *id)
		return id ? *id : 0;
	*id = ++f->last;
	e.code = *id;
	session__emit(s, &e, sizeof(e));
	return *id;
}

const char *python_functions__path(const struct session *s, const char *file)
{
	const char *library = session__no_args(s) ? python_library__part(file) : NULL;

	return library ? library : session__path(s, file);
}

void python_functions__sizes(const struct python_functions *f, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "Python functions",
				 .entries = recent__entries(&f->ids),
				 .max = 2 * f->ids.max,
				 .bytes = recent__bytes(&f->ids),
				 .evicted = f->ids.evicted },
	   arg);
}
