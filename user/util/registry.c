// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/registry.h"

#include <stddef.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const void *registry__find(const void *const *start, const void *const *stop, const char *name)
{
	for (; start < stop; start++)
		if (!strcmp(*(const char *const *)*start, name))
			return *start;
	return NULL;
}

/* Searches linearly, because there are few. */
const void *registry__next(const void *const *start, const void *const *stop, const void *last,
			   int (*order)(const void *a, const void *b))
{
	const void *next = NULL;

	order = order ? order : by_name;
	for (; start < stop; start++)
		if ((!last || order(*start, last) > 0) && (!next || order(*start, next) < 0))
			next = *start;
	return next;
}
