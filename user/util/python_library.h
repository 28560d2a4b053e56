/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_PYTHON_LIBRARY_H
#define SONDE_UTIL_PYTHON_LIBRARY_H

/*
 * Where in Python's standard library a file is: "/lib/python3.11/json/encoder.py", a part of file. NULL: it is none of it.
 * What pip or a distribution has put under it is not the standard library.
 */
const char *python_library__part(const char *file);

#endif
