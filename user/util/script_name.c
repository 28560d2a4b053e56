// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/script_name.h"

#include "util/array.h"
#include "util/path.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = { "JS:", "LazyCompile:", "Function:", "Script:", "Eval:" };

bool script_name__parse(const char *name, struct script_name *out)
{
	const char *symbol = NULL, *file, *line, *column;

	for (size_t i = 0; i < ARRAY_LEN(kinds) && !symbol; i++)
		if (path__begins_with(name, kinds[i]))
			symbol = name + strlen(kinds[i]);
	symbol += symbol ? strspn(symbol, "*^~+") : 0;
	file = symbol ? strchr(symbol, ' ') : NULL;
	column = file ? strrchr(file, ':') : NULL;
	line = column ? memrchr(file, ':', (size_t)(column - file)) : NULL;
	if (!line)
		return false;
	*out = (struct script_name){ .symbol = symbol, .function = symbol, .file = file + 1 };
	out->function_len = (int)(file - symbol);
	if (!out->function_len) {
		out->function = "(anonymous)";
		out->function_len = (int)strlen(out->function);
	}
	/* modules are named by their address; a file of another host has a third slash only behind it */
	if (path__begins_with(out->file, "file:///") && line > out->file + strlen("file:///"))
		out->file += strlen("file://");
	out->file_len = (int)(line - out->file);
	out->line = (u32)strtoul(line + 1, NULL, 10);
	return true;
}
