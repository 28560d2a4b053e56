/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers texts: equal ones have the same number. */
#pragma once

#include <string.h>

#include "util/map.h"

#define TEXTS_LEN 192 /* with the NUL; longer texts are cut */

static inline void texts__init(struct map *m)
{
	map__init(m, TEXTS_LEN, sizeof(u32));
}

/* Returns the text's number, from 1; 0: no memory. */
static inline u32 texts__number(struct map *m, const char *text)
{
	char key[TEXTS_LEN] = ""; /* keys are compared whole, with the zeros behind the text */
	u32 *number;

	memccpy(key, text, 0, sizeof(key) - 1);
	number = map__get(m, key);
	if (number && !*number)
		*number = m->n;
	return number ? *number : 0;
}

/* NULL: no such number */
static inline const char *texts__text(const struct map *m, u32 number)
{
	return number && number <= m->n ? map__key(m, number - 1) : NULL;
}
