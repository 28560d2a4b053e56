/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdbool.h>

/*
 * Returns the part of `file` in Python's standard library, "/lib/python3.11/json/encoder.py"; NULL: it is not in it, as
 * are packages that pip or a distribution installed below it.
 */
const char *python_library__part(const char *file);
/* Is it the path of an installed package? */
bool python_library__is_package(const char *file);
/* Does the folder have a name that one of the library has: "python3.11", "python311.zip", "base_library.zip"? */
bool python_library__is_folder(const char *folder);
