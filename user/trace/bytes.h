/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A growing buffer. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"

struct bytes {
	u8 *data;
	size_t n, capacity;
};

/* Makes room for `more` bytes after the first n. 0 or -ENOMEM. */
static inline int bytes__reserve(struct bytes *b, size_t more)
{
	size_t room = b->capacity ? b->capacity : 256;
	void *at;

	if (more <= b->capacity - b->n)
		return 0;
	if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
		return -ENOMEM;
	while (room - b->n < more)
		room *= 2;
	at = realloc(b->data, room);
	if (!at)
		return -ENOMEM;
	b->data = at;
	b->capacity = room;
	return 0;
}

static inline int bytes__add(struct bytes *b, const void *p, size_t n)
{
	int err = bytes__reserve(b, n);

	if (err)
		return err;
	if (n)
		memcpy(b->data + b->n, p, n);
	b->n += n;
	return 0;
}

static inline void bytes__free(struct bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}
