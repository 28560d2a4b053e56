// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds a CPython that was linked into a program and stripped, so that no symbol is left. From 3.10 on _PyRuntime is a
 * section of its own, for debuggers. PyCode_Type is the struct whose third member after the head (tp_name) points to
 * the string "code", and whose sizes are those of a code object.
 */
#include "python/stripped.h"

#include "util/array.h"

#include <string.h>

#define NAME_OFFSET 24 /* PyTypeObject.tp_name, Include/cpython/object.h; tp_basicsize and tp_itemsize follow */
#define SECTION	    ".PyRuntime"
#define TEXTS_MAX   64 /* for each of them the data is searched */

/* The sizes of _PyRuntimeState before 3.13, from where on it begins with the version. */
static const struct {
	u32 version, from, to;
} sizes[] = {
	{ 0x030a, 512, 1024 },
	{ 0x030b, 160000, 180000 },
	{ 0x030c, 440000, 480000 },
};

bool stripped__is_cpython(struct elf *elf)
{
	return elf__section_holds(elf, SECTION, "");
}

struct search {
	struct elf *elf;
	u64 found;
	u32 n;
	u32 texts;
};

static bool on_pointer(u64 at, void *arg)
{
	struct search *s = arg;
	u64 len = 2 * sizeof(u64), words[2];
	const u8 *bytes = elf__bytes(s->elf, at + 8, &len);

	if (!bytes || len < sizeof(words))
		return true;
	memcpy(words, bytes, sizeof(words));
	/* a place may be found by its data and by its relocation */
	if (words[0] >= 100 && words[0] <= 300 && words[1] <= 2 && s->found != at - NAME_OFFSET) {
		s->found = at - NAME_OFFSET;
		s->n++;
	}
	return true;
}

static bool on_text(u64 addr, void *arg)
{
	struct search *s = arg;

	elf__each_pointer(s->elf, addr, on_pointer, s);
	return ++s->texts < TEXTS_MAX;
}

static u32 version_of(u64 size)
{
	for (u32 i = 0; i < ARRAY_LEN(sizes); i++)
		if (size >= sizes[i].from && size < sizes[i].to)
			return sizes[i].version;
	return 0;
}

bool stripped__find(struct elf *elf, struct stripped *out)
{
	struct search s = { .elf = elf };
	u64 size;

	if (!elf__section_range(elf, SECTION, &out->runtime, &size))
		return false;
	out->version = version_of(size);
	elf__each_constant(elf, "code", on_text, &s);
	out->code_type = s.found;
	return s.n == 1;
}
