// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/library.h"

#include <string.h>

struct search {
	const struct probes *probes;
	const char *library;
	const char *function; /* NULL: those that the programs name */
};

static bool is_named(const struct search *s, const char *name)
{
	return s->function ? !strcmp(name, s->function) : probes__names(s->probes, s->library, name);
}

/* 1: found, 2: the dynamic symbols are over */
static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	if (!sym->dynamic)
		return 2;
	return sym->function && is_named(arg, sym->name);
}

static enum library_match match(struct elf *elf, const struct search *s)
{
	const char *soname = elf__soname(elf);
	size_t len = strlen(s->library);

	if (*soname && !strncmp(soname, s->library, len))
		return LIBRARY_YES;
	if (elf__is_program(elf) || elf__each_symbol(elf, on_symbol, (void *)s) != 1)
		return LIBRARY_NO;
	return *soname ? LIBRARY_OTHER : LIBRARY_YES;
}

enum library_match library__match(struct elf *elf, const struct probes *probes, const char *library)
{
	struct search s = { .probes = probes, .library = library };

	return match(elf, &s);
}

bool library__is(struct elf *elf, const char *library, const char *function)
{
	struct search s = { .library = library, .function = function };

	return match(elf, &s) == LIBRARY_YES;
}
