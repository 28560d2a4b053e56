/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dynamic linker's cache of installed libraries. */
#pragma once

#include <stddef.h>

/* Calls fn with the path of each library in /etc/ld.so.cache; none if it can't be read. */
void ldcache__each(void (*fn)(const char *path, void *arg), void *arg);
/* The same for the contents of such a file. Returns the number of libraries. */
unsigned int ldcache__parse(const void *data, size_t len, void (*fn)(const char *path, void *arg), void *arg);
