// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The switches of the program that tests run; user/util/test_switch.h. Its functions replace the weak ones there. */
#include "util/test_switch.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the next item of SONDE_TEST at *list to buf; false: no more. */
static bool next_item(const char **list, char *buf, size_t len)
{
	const char *start = *list, *end;

	if (!start || !*start)
		return false;
	end = strchrnul(start, ',');
	snprintf(buf, len, "%.*s", (int)(end - start), start);
	*list = *end ? end + 1 : end;
	return true;
}

bool test_switch__is_set(const char *item)
{
	const char *list = getenv("SONDE_TEST");
	char one[128];

	while (next_item(&list, one, sizeof(one)))
		if (!strcmp(one, item))
			return true;
	return false;
}

bool test_switch__matches(const char *prefix, const char *name)
{
	const char *list = getenv("SONDE_TEST");
	size_t len = strlen(prefix);
	char one[128];

	while (next_item(&list, one, sizeof(one)))
		if (!strncmp(one, prefix, len) && one[len] == ':' && !fnmatch(one + len + 1, name, 0))
			return true;
	return false;
}

bool test_switch__text(const char *prefix, char *buf, size_t size)
{
	const char *list = getenv("SONDE_TEST");
	size_t len = strlen(prefix);
	char one[128];

	while (next_item(&list, one, sizeof(one)))
		if (!strncmp(one, prefix, len) && one[len] == ':') {
			snprintf(buf, size, "%s", one + len + 1);
			return true;
		}
	return false;
}
