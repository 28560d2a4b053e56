/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Returns the name after the last '/' ("srv.py" for "/opt/app/srv.py"), or the path if there is none. */
static inline const char *path__file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Is it the file of a Python interpreter, by its name? */
static inline bool path__is_interpreter(const char *path)
{
	const char *name = path__file_name(path);

	return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

/* Is it the file of ctypes or cffi, by its name? Python calls functions of other libraries through these. */
static inline bool path__is_foreign_call(const char *path)
{
	const char *name = path__file_name(path);

	return !strncmp(name, "_ctypes.", 8) || !strncmp(name, "_ctypes_", 8) || !strncmp(name, "libffi.", 7) ||
	       !strncmp(name, "_cffi_backend.", 14);
}

/* Does the path, or a name, begin so? */
static inline bool path__begins_with(const char *path, const char *start)
{
	return !strncmp(path, start, strlen(start));
}

/* Does the path, or a name, end so? */
static inline bool path__ends_with(const char *path, const char *end)
{
	size_t len = strlen(path), n = strlen(end);

	return len >= n && !strcmp(path + len - n, end);
}
