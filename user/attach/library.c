// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/library.h"

#include <fnmatch.h>
#include <string.h>

struct search {
	const struct probes *probes;
	const char *library;
};

/* Returns 1 if it was found, 2 after the last dynamic symbol. */
static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	const struct search *s = arg;

	if (!sym->dynamic)
		return 2;
	return sym->function && probes__names(s->probes, s->library, sym->name);
}

static int on_symbol_of_glob(const struct elf_symbol *sym, void *arg)
{
	if (!sym->dynamic)
		return 2;
	return sym->function && !fnmatch(arg, sym->name, 0);
}

/*
 * For a section that names functions only by globs: does the file export a match of each glob? A single match would
 * be weak evidence.
 */
static bool exports_all_globs(struct elf *elf, const struct section *section)
{
	const char *list = section->rest;
	char name[512];
	bool any = false;

	while (section__next_function(&list, name, sizeof(name))) {
		if (!strpbrk(name, "*?[") || elf__each_symbol(elf, on_symbol_of_glob, name) != 1)
			return false;
		any = true;
	}
	return any;
}

static bool exports_globs(struct elf *elf, const struct search *s)
{
	for (u32 i = 0; s->probes && i < s->probes->n_programs; i++) {
		const struct section *section = &s->probes->programs[i].section;

		if (!strcmp(section->library, s->library) && exports_all_globs(elf, section))
			return true;
	}
	return false;
}

static enum library_match match(struct elf *elf, const struct search *s)
{
	const char *soname = elf__soname(elf);

	if (section__is_library(s->library, soname))
		return LIBRARY_YES;
	if (elf__is_program(elf))
		return LIBRARY_NO;
	if (elf__each_symbol(elf, on_symbol, (void *)s) != 1 && (*soname || !exports_globs(elf, s)))
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
	const char *soname = elf__soname(elf);

	return *soname ? !strncmp(soname, library, strlen(library)) :
			 !elf__is_program(elf) && elf__exports(elf, function);
}
