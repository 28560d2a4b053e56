// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/source_lines.h"

#include <errno.h>
#include <string.h>

struct line_key {
	u64 file, line;
};

static struct line_key key_of(const char *file, u32 line)
{
	return (struct line_key){ .file = map__hash_bytes(file, strlen(file)), .line = line };
}

static int on_rows(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), file, line, text);
	struct source_lines *s = arg;

	for (u32 i = 0; i < rows__count(rows); i++) {
		const char *path = trace__string(s->trace, (u32)rows__u64(rows, file, i));
		struct line_key key = key_of(path, (u32)rows__u64(rows, line, i)), invalid = key_of(path, 0);
		const char *new = trace__string(s->trace, (u32)rows__u64(rows, text, i));
		const char **old = map__get(&s->lines, &key);

		if (!old)
			return -ENOMEM;
		/* merged traces may be of machines with different files */
		if (*old && strcmp(*old, new) != 0 && !map__get(&s->lines, &invalid))
			return -ENOMEM;
		*old = new;
	}
	return 0;
}

int source_lines__load(struct source_lines *s, struct trace *t)
{
	s->trace = t;
	map__init(&s->lines, sizeof(struct line_key), sizeof(const char *));
	return trace__read_kind(t, "meta_source", on_rows, s);
}

void source_lines__free(struct source_lines *s)
{
	map__free(&s->lines);
}

const char *source_lines__text(const struct source_lines *s, const char *file, u32 line)
{
	struct line_key key = key_of(file, line), invalid = key_of(file, 0);
	const char **text = map__find(&s->lines, &key);

	return text && line && !map__find(&s->lines, &invalid) ? *text : NULL;
}
