// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/source_path.h"

#include "util/array.h"
#include "util/path.h"
#include "util/python_library.h"

#include <string.h>

static const char *const ends[] = {
	".py", ".pyx", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".rs", ".go", ".js", ".mjs", ".cjs", ".ts",
};

/* Folders of packages of Rust, Go and node */
static const char *const packages[] = { "/.cargo/registry/", "/.cargo/git/", "/go/pkg/mod/", "/node_modules/" };

bool source_path__is_source(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (path__ends_with(name, ends[i]))
			return true;
	return false;
}

bool source_path__is_library(const char *path)
{
	return strstr(path, "/c++/") || path__begins_with(path, "/usr/include/") || path__begins_with(path, "/rustc/");
}

static bool is_package(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(packages); i++)
		if (strstr(path, packages[i]))
			return true;
	return python_library__is_package(path);
}

/* Folders of the system; users' Python programs lie there, too */
static bool is_systems(const char *path)
{
	return path__begins_with(path, "/usr/lib/") || path__begins_with(path, "/usr/src/") ||
	       path__begins_with(path, "/usr/local/go/src/");
}

bool source_path__is_users(const char *path)
{
	bool is_python = path__ends_with(path, ".py");

	return *path == '/' && source_path__is_source(path) && !is_package(path) && !source_path__is_library(path) &&
	       (is_python ? !python_library__part(path) : !is_systems(path));
}
