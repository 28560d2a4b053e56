// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/examine/perf_map.h"

#include "attach/opener.h"
#include "util/array.h"
#include "util/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTIONS_MAX (4u << 20)
#define OVERLAPS_MAX  16 /* functions before an address that are compared */

struct jit_function {
	u64 start, size;
	u32 name; /* offset in the text */
};

struct perf_map {
	char *text; /* ends with a NUL */
	u32 size;
	struct jit_function *list; /* sorted by start, of one start the newest last */
	u32 n;
	struct code_place place; /* the last answer */
};

static int read_text(struct perf_map *m, int fd)
{
	ssize_t n = 1;

	m->text = malloc(PERF_MAP_MAX + 1);
	if (!m->text)
		return -ENOMEM;
	while (n > 0 && m->size < PERF_MAP_MAX) {
		n = pread(fd, m->text + m->size, PERF_MAP_MAX - m->size, m->size);
		m->size += n > 0 ? (u32)n : 0;
	}
	m->text[m->size] = '\0';
	return n < 0 ? -errno : 0;
}

/* Reads a hexadecimal number and the blank after it. */
static bool take_number(const char **at, u64 *out)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *from = *at, *digit;

	from += !strncmp(from, "0x", 2) ? 2 : 0;
	*at = from;
	for (*out = 0; **at && (digit = strchr(digits, **at)) != NULL; (*at)++)
		*out = *out << 4 | (u64)(digit - digits) % 16;
	return *at > from && *at - from <= 16 && *(*at)++ == ' ';
}

static int add_line(struct perf_map *m, const char *line)
{
	struct jit_function f;

	if (!take_number(&line, &f.start) || !take_number(&line, &f.size) || m->n == FUNCTIONS_MAX)
		return 0;
	f.name = (u32)(line - m->text);
	return array__push(m->list, m->n, f) ? 0 : -ENOMEM;
}

static int by_start(const void *a, const void *b)
{
	const struct jit_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int perf_map__new(struct perf_map **out, int fd)
{
	struct perf_map *m = *out = calloc(1, sizeof(*m));
	int err = m ? read_text(m, fd) : -ENOMEM;

	for (const char *line = m ? m->text : NULL; !err && line; line = strchr(line, '\n')) {
		line += *line == '\n';
		err = add_line(m, line);
	}
	if (!err && m->n)
		qsort(m->list, m->n, sizeof(*m->list), by_start);
	return err;
}

void perf_map__free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->list);
	free(m);
}

u64 perf_map__bytes(const struct perf_map *m)
{
	return m ? m->size + array__bytes(m->list, m->n) : 0;
}

/* Memory of code that was freed is used again: of the functions at an address the last one in the file counts. */
const struct code_place *perf_map__at(struct perf_map *m, u64 address)
{
	u32 n = (u32)SEARCH(m->n, i, m->list[i].start <= address);
	const struct jit_function *best = NULL;

	for (u32 i = n; i > 0 && n - i < OVERLAPS_MAX; i--) {
		const struct jit_function *f = &m->list[i - 1];

		if (address - f->start < f->size && (!best || f->name > best->name))
			best = f;
	}
	if (!best)
		return NULL;
	m->place = (struct code_place){ .function = best->start, .has_function = true, .unwind_error = -ENOENT };
	snprintf(m->place.text, sizeof(m->place.text), "%.*s", (int)strcspn(m->text + best->name, "\r\n"),
		 m->text + best->name);
	m->place.name = *m->place.text ? m->place.text : NULL;
	return &m->place;
}
