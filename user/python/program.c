// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Modules have their files in __file__. Module __main__ of `python -m NAME` has a __spec__, that of a script none. */
#include "python/program.h"

#include "python/objects.h"

#include <stdlib.h>
#include <string.h>

static void read_file(struct snapshot *l, u64 interpreter, const char *module, char path[PROGRAM_PATH])
{
	char *text = snapshot__text(l, object__of_module(l, interpreter, module, "__file__"));

	if (text && strlen(text) < PROGRAM_PATH)
		strcpy(path, text);
	free(text);
}

void snapshot__program(struct snapshot *l, struct python_program *p)
{
	u64 interpreter = snapshot__main_interpreter(l), spec;
	char *name;

	*p = (struct python_program){};
	if (!interpreter)
		return;
	read_file(l, interpreter, "os", p->library);
	name = strrchr(p->library, '/');
	p->library[name ? name - p->library : 0] = '\0';
	spec = object__of_module(l, interpreter, "__main__", "__spec__");
	if (!spec || object__type(l, spec) == OBJECT_NONE)
		read_file(l, interpreter, "__main__", p->script);
}
