// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/section.h"

#include "util/array.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

static const struct {
	const char *prefix;
	enum section_kind kind;
} kinds[] = {
	{ "span", SECTION_SPAN },	 { "entry", SECTION_ENTRY },	   { "site", SECTION_SITE },
	{ "placed", SECTION_PLACED },	 { "tp_btf", SECTION_TRACEPOINT }, { "iter", SECTION_ITER },
	{ "fexit", SECTION_TRACEPOINT }, { "iter.s", SECTION_ITER },	   { "clock", SECTION_CLOCK },
	{ "called", SECTION_CALLED },
};

static int copy(char *to, size_t len, const char *from, size_t n)
{
	if (n >= len)
		return -EINVAL;
	memcpy(to, from, n);
	to[n] = '\0';
	return 0;
}

int section__parse(struct section *out, const char *name)
{
	const char *slash, *plus, *colon;
	size_t len;

	memset(out, 0, sizeof(*out));
	if (*name == '?') {
		out->on_demand = true;
		name++;
	}
	slash = strchr(name, '/');
	if (!slash)
		return 0;
	plus = memchr(name, '+', slash - name);
	len = (plus ? plus : slash) - name;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strlen(kinds[i].prefix) == len && !memcmp(kinds[i].prefix, name, len))
			out->kind = kinds[i].kind;
	if (plus && copy(out->option, sizeof(out->option), plus + 1, slash - plus - 1))
		return -EINVAL;
	out->rest = slash + 1;
	if (out->kind != SECTION_SPAN && out->kind != SECTION_ENTRY && out->kind != SECTION_PLACED)
		return 0;
	colon = strchr(out->rest, ':');
	if (!colon || colon == out->rest || !colon[1])
		return -EINVAL;
	if (copy(out->library, sizeof(out->library), out->rest, colon - out->rest))
		return -EINVAL;
	out->rest = colon + 1;
	return 0;
}

bool section__next_function(const char **list, char *buf, size_t len)
{
	const char *end;
	size_t n;

	while (**list == ',' || **list == ';')
		(*list)++;
	if (!**list)
		return false;
	n = strcspn(*list, ",;");
	end = *list + n;
	if (n >= len)
		n = len - 1;
	memcpy(buf, *list, n);
	buf[n] = '\0';
	*list = end;
	return true;
}

bool section__has(const struct section *s, const char *function, unsigned int *group)
{
	const char *list = s->rest;
	char name[512];

	for (*group = 0;;) {
		for (; *list == ',' || *list == ';'; list++)
			*group += *list == ';';
		if (!section__next_function(&list, name, sizeof(name)))
			return false;
		if (!fnmatch(name, function, 0))
			return true;
	}
}

bool section__is_library(const char *libraries, const char *name)
{
	while (*libraries) {
		size_t n = strcspn(libraries, "|");

		if (n && !strncmp(name, libraries, n))
			return true;
		libraries += n + (libraries[n] == '|');
	}
	return false;
}

bool section__matches_library(const struct section *s, const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	/* a library in a memfd of its name, as `sonde inject` passes it */
	if (!strncmp(base, "memfd:", 6))
		base += 6;
	return section__is_library(s->library, base);
}

bool section__refuses_returns(const char *name)
{
	struct section s;
	const char *list;
	char function[512];

	if (section__parse(&s, name) || s.kind != SECTION_SPAN)
		return false;
	if (!strncmp(s.library, "libc.", 5) || !strncmp(s.library, "libpthread", 10) ||
	    !strncmp(s.library, "ld-linux", 8))
		return true;
	list = s.rest;
	while (section__next_function(&list, function, sizeof(function)))
		if (!strncmp(function, "_Z", 2))
			return true;
	return false;
}
