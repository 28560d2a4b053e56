// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads source lines. A trace may name any path, so a file is opened only if it is regular and not too large, and if
 * the user who runs sonde may read it: commands that read a trace run without root's privileges.
 */
#include "report/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "util/file.h"

#define FILE_MAX  (8 << 20) /* bytes */
#define FILES_MAX 1000

struct source {
	char *text; /* NULL: not readable */
	size_t size;
};

void sources__init(struct sources *s)
{
	memset(s, 0, sizeof(*s));
	map__init(&s->files, sizeof(u64), sizeof(struct source));
}

void sources__free(struct sources *s)
{
	for (u32 i = 0; i < s->files.n; i++)
		free(((struct source *)map__value(&s->files, i))->text);
	map__free(&s->files);
}

static char *read_file(const char *path, size_t *size, u64 made, bool *newer)
{
	int fd = *path == '/' ? file__open_regular(path) : -1;
	struct stat st;
	char *text = NULL;
	ssize_t n = 0;

	*size = 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_size <= FILE_MAX) {
		text = malloc((size_t)st.st_size + 1);
		*newer = (u64)st.st_mtim.tv_sec > made / 1000000000ULL + 1;
	}
	while (text && *size < (size_t)st.st_size && (n = read(fd, text + *size, (size_t)st.st_size - *size)) > 0)
		*size += (size_t)n;
	if (fd >= 0)
		close(fd);
	return text;
}

static const struct source *source_of(struct sources *s, const char *path, u64 made)
{
	u64 hash = XXH3_64bits(path, strlen(path));
	struct source *f = map__find(&s->files, &hash);
	bool newer = false;

	if (f)
		return f;
	f = s->files.n < FILES_MAX ? map__get(&s->files, &hash) : NULL;
	if (!f)
		return NULL;
	f->text = read_file(path, &f->size, made, &newer);
	s->unread += !f->text;
	s->newer += newer;
	return f;
}

const char *sources__line(struct sources *s, const char *path, u32 line, u64 made, char *buf, size_t size)
{
	const struct source *f = *path && line ? source_of(s, path, made) : NULL;
	const char *at, *end, *next;

	if (!f || !f->text)
		return NULL;
	end = f->text + f->size;
	for (at = f->text; at < end && --line; at = next ? next + 1 : end)
		next = memchr(at, '\n', (size_t)(end - at));
	if (at >= end)
		return NULL;
	next = memchr(at, '\n', (size_t)(end - at));
	end = next ? next : end;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	snprintf(buf, size, "%.*s", (int)(end - at < 300 ? end - at : 300), at);
	return buf;
}
