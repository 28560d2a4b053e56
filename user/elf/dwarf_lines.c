// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A unit's functions are collected when an address in it is looked up for the first time: libdw's dwarf_getscopes()
 * would search all of the unit for each address.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elf/dwarf_lines.h"
#include "util/array.h"
#include "util/search.h"
#include "util/source_path.h"

#define RANGES_MAX (1u << 20) /* of all units, and of the functions of one */
#define CPU_NS	   500000000ULL /* CPU time for all lines of a file */
#define DEPTH_MAX  64 /* inlined functions and namespaces within each other */

/* Addresses of a unit's or function's code */
struct code_range {
	u64 start, end;
	Dwarf_Off die; /* of the unit or function */
	u32 functions; /* of a unit: index in dwarf_lines.functions plus 1, 0: they were not collected yet */
};

struct ranges {
	struct code_range *list; /* sorted */
	u32 n;
};

struct dwarf_lines {
	Elf *elf;
	Dwarf *dwarf;
	struct ranges units; /* the file's table of them, .debug_aranges, may be missing: clang does not write it */
	struct ranges *functions; /* of one range of a unit each */
	u32 n_functions;
	u64 used; /* CPU time so far */
};

static u64 cpu_time(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) ? 0 : (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort(struct ranges *r)
{
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), compare_ranges);
}

static struct code_range *find(const struct ranges *r, u64 address)
{
	u32 n = SEARCH(r->n, i, r->list[i].start <= address);

	return n && address < r->list[n - 1].end ? &r->list[n - 1] : NULL;
}

static int add_ranges(struct ranges *r, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0 && r->n < RANGES_MAX)
		if (!array__push(r->list, r->n, ((struct code_range){ start, end, dwarf_dieoffset(die), 0 })))
			return -ENOMEM;
	return 0;
}

static int find_units(struct dwarf_lines *l)
{
	u64 until = cpu_time() + CPU_NS;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	int err = 0;

	while (!err && cpu_time() < until && !dwarf_get_units(l->dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		if (dwarf_tag(&unit) == DW_TAG_compile_unit || dwarf_tag(&unit) == DW_TAG_skeleton_unit)
			err = add_ranges(&l->units, &unit);
	sort(&l->units);
	return err ? err : l->units.n ? 0 : -ENODATA;
}

int dwarf_lines__new(struct dwarf_lines **out, int fd)
{
	struct dwarf_lines *l = calloc(1, sizeof(*l));
	int err = -ENODATA;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	l->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	l->dwarf = l->elf ? dwarf_begin_elf(l->elf, DWARF_C_READ, NULL) : NULL;
	if (l->dwarf)
		err = find_units(l);
	if (err)
		dwarf_lines__free(l);
	else
		*out = l;
	return err;
}

void dwarf_lines__free(struct dwarf_lines *l)
{
	if (!l)
		return;
	dwarf_end(l->dwarf);
	elf_end(l->elf);
	for (u32 i = 0; i < l->n_functions; i++)
		free(l->functions[i].list);
	free(l->functions);
	free(l->units.list);
	free(l);
}

static void set(Dwarf_Die *unit, struct dwarf_line *out, const char *file, int line)
{
	size_t len = file ? strlen(file) : 0, folder_len;
	Dwarf_Attribute at;
	const char *folder;

	if (!len || line <= 0)
		return;
	/* libdw leaves the path relative if the folder in the table of lines is, as rustc writes it */
	folder = *file == '/' ? NULL : dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &at));
	folder_len = folder && *folder == '/' ? strlen(folder) : 0;
	if (folder_len && folder_len + 1 + len < sizeof(out->file))
		snprintf(out->file, sizeof(out->file), "%s/%s", folder, file);
	else
		snprintf(out->file, sizeof(out->file), "%s",
			 len < sizeof(out->file) ? file : file + len + 1 - sizeof(out->file));
	out->line = (u32)line;
}

/* Sets *out to the line that called the inlined function. */
static void set_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct dwarf_line *out)
{
	Dwarf_Word file = 0, line = 0;
	Dwarf_Attribute at;
	Dwarf_Files *files;
	size_t n;

	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &at), &file) &&
	    !dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &at), &line) &&
	    !dwarf_getsrcfiles(unit, &files, &n) && file < n)
		set(unit, out, dwarf_filesrc(files, file, NULL, NULL), (int)line);
}

/* Sets *out to the line in the table of lines. */
static void set_line(Dwarf_Die *unit, u64 address, struct dwarf_line *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0;

	if (line && !dwarf_lineno(line, &number))
		set(unit, out, dwarf_linesrc(line, NULL, NULL), number);
}

/* Collects the functions of a unit or namespace. */
static int add_functions(struct ranges *r, Dwarf_Die *parent, u32 depth)
{
	Dwarf_Die die;
	int err = 0;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die))
		return 0;
	do {
		if (dwarf_tag(&die) == DW_TAG_subprogram)
			err = add_ranges(r, &die);
		else if (dwarf_tag(&die) == DW_TAG_namespace)
			err = add_functions(r, &die, depth + 1);
	} while (!err && !dwarf_siblingof(&die, &die));
	return err;
}

static const struct ranges *functions_of(struct dwarf_lines *l, struct code_range *unit, Dwarf_Die *die)
{
	struct ranges r = { .n = 0 };

	if (unit->functions)
		return &l->functions[unit->functions - 1];
	if (!array__room(l->functions, l->n_functions) || add_functions(&r, die, 0)) {
		free(r.list);
		return NULL;
	}
	sort(&r);
	l->functions[l->n_functions] = r;
	unit->functions = ++l->n_functions;
	return &l->functions[l->n_functions - 1];
}

/* Finds the child with code at the address that is an inlined function or a block. */
static bool find_part(Dwarf_Die *parent, u64 address, Dwarf_Die *out)
{
	if (dwarf_child(parent, out))
		return false;
	do {
		if ((dwarf_tag(out) == DW_TAG_inlined_subroutine || dwarf_tag(out) == DW_TAG_lexical_block) &&
		    dwarf_haspc(out, address) > 0)
			return true;
	} while (!dwarf_siblingof(out, out));
	return false;
}

/* Finds the functions that are inlined into this one at the address, the outermost first. */
static u32 find_inlined(Dwarf_Die *function, u64 address, Dwarf_Die *list)
{
	Dwarf_Die at = *function, part;
	u32 n = 0;

	for (u32 depth = 0; depth < DEPTH_MAX && find_part(&at, address, &part); depth++) {
		if (dwarf_tag(&part) == DW_TAG_inlined_subroutine)
			list[n++] = part;
		at = part;
	}
	return n;
}

static void add_inlined(struct dwarf_place *out, Dwarf_Die *die, const struct dwarf_line *line)
{
	struct dwarf_inlined *in = &out->inlined[DWARF_INLINED - 1];
	Dwarf_Attribute at;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &at));

	name = name ? name : dwarf_diename(die);
	if (!name || !line->line || source_path__is_library(line->file))
		return;
	/* the innermost ones are retained */
	if (out->n_inlined == DWARF_INLINED)
		memmove(out->inlined, out->inlined + 1, sizeof(out->inlined) - sizeof(*in));
	else
		in = &out->inlined[out->n_inlined++];
	snprintf(in->name, sizeof(in->name), "%s", name);
	in->line = *line;
}

static void find_place(struct dwarf_lines *l, u64 address, struct dwarf_place *out)
{
	struct code_range *unit = find(&l->units, address), *function = NULL;
	Dwarf_Die die, of, list[DEPTH_MAX];
	const struct ranges *functions;
	struct dwarf_line line;
	u32 n = 0;

	if (!unit || !dwarf_offdie(l->dwarf, unit->die, &die))
		return;
	functions = functions_of(l, unit, &die);
	if (functions)
		function = find(functions, address);
	if (function && dwarf_offdie(l->dwarf, function->die, &of))
		n = find_inlined(&of, address, list);
	for (u32 i = 0; i <= n; i++) {
		line = (struct dwarf_line){ .line = 0 };
		if (i < n)
			set_call(&die, &list[i], &line);
		else
			set_line(&die, address, &line);
		if (i)
			add_inlined(out, &list[i - 1], &line);
		else
			out->line = line;
	}
}

void dwarf_lines__at(struct dwarf_lines *l, u64 address, struct dwarf_place *out)
{
	u64 start = cpu_time();

	memset(out, 0, sizeof(*out));
	if (l->used >= CPU_NS)
		return;
	find_place(l, address, out);
	l->used += cpu_time() - start;
}
