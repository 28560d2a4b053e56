// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/python_library.h"

#include <stddef.h>
#include <string.h>

/* Matches ".../lib/python3.11/json/encoder.py", ".../lib64/python3.13t/..", ".../lib/python311.zip/..". */
const char *python_library__part(const char *file)
{
	for (const char *at = file; (at = strstr(at, "/python3")) != NULL; at++) {
		const char *rest = strchr(at + 1, '/'), *lib = NULL;

		if (at - file >= 4 && !memcmp(at - 4, "/lib", 4))
			lib = at - 4;
		else if (at - file >= 6 && !memcmp(at - 6, "/lib64", 6))
			lib = at - 6;
		/* Debian's /usr/lib/python3/dist-packages has no minor version */
		if (!rest || !lib || (size_t)(rest - at) == strlen("/python3"))
			continue;
		return strncmp(rest, "/site-packages/", 15) && strncmp(rest, "/dist-packages/", 15) ? lib : NULL;
	}
	return NULL;
}
