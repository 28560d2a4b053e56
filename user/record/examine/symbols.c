// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/examine/symbols.h"

#include "record/examine/collector.h"
#include "record/examine/examine.h"
#include "util/array.h"
#include "util/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MAX (4u << 20)
#define ALIASES_MAX 16 /* names of one function that are compared */

struct symbols {
	struct elf *elf;
	struct elf_function *list; /* sorted by address */
	u32 n;
	struct code_place place; /* the last answer */
	struct collector collector; /* of a stripped CPython */
	struct dwarf_lines *lines; /* NULL: the file has none */
};

static int on_function(const struct elf_function *f, void *arg)
{
	struct symbols *s = arg;

	if (!f->addr || s->n == SYMBOLS_MAX)
		return 0;
	return array__push(s->list, s->n, *f) ? 0 : -ENOMEM;
}

/* Counts leading underscores: of several names of one function, the one without them is the public one. */
static u32 count_underscores(const char *name)
{
	return strspn(name, "_");
}

static bool is_better(const char *name, const char *than)
{
	u32 a = count_underscores(name), b = count_underscores(than);

	return a != b ? a < b : strcmp(name, than) < 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct elf_function *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	/* the larger one first, which is retained */
	return x->size > y->size ? -1 : x->size < y->size;
}

int symbols__new(struct symbols **out, struct elf *elf, int fd)
{
	struct symbols *s = calloc(1, sizeof(*s));
	struct elf_function *fit;
	u32 kept = 0;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->elf = elf;
	elf__add_debugdata(elf);
	if (elf__each_function(elf, on_function, s)) {
		symbols__free(s);
		return -ENOMEM;
	}
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), compare_symbols);
	for (u32 i = 0; i < s->n; i++)
		if (!kept || s->list[i].addr != s->list[kept - 1].addr || s->list[i].size == s->list[kept - 1].size)
			s->list[kept++] = s->list[i];
	s->n = kept;
	fit = reallocarray(s->list, kept + 1, sizeof(*fit));
	if (fit)
		s->list = fit;
	if (elf__stripped(elf) && elf__exports(elf, "PyGC_Collect"))
		collector__find(&s->collector, elf);
	dwarf_lines__new(&s->lines, fd);
	*out = s;
	return 0;
}

void symbols__free(struct symbols *s)
{
	if (!s)
		return;
	dwarf_lines__free(s->lines);
	free(s->list);
	free(s);
}

u64 symbols__bytes(const struct symbols *s)
{
	return ((u64)s->n + 1) * sizeof(*s->list);
}

/* Returns the first of the last functions at or before addr, which are names of one function; NULL: there is none. */
static const struct elf_function *last_before(const struct symbols *s, u64 addr)
{
	u32 n = SEARCH(s->n, i, s->list[i].addr <= addr);

	while (n > 1 && s->list[n - 2].addr == s->list[n - 1].addr)
		n--;
	return n ? &s->list[n - 1] : NULL;
}

/* Copies the best name of the function, whose names begin at f. */
static void choose_name(const struct symbols *s, const struct elf_function *f, char *name, size_t len)
{
	const struct elf_function *end = s->list + s->n;
	char other[sizeof(s->place.text)];
	u64 addr = f->addr;

	*name = '\0';
	for (u32 i = 0; i < ALIASES_MAX && f < end && f->addr == addr; i++, f++)
		if (elf__function_name(s->elf, f, other, sizeof(other)) && (!*name || is_better(other, name)))
			snprintf(name, len, "%s", other);
}

/* Is it (a part of, NAME.cold) an interpreter loop? With tail calls each bytecode is a function. */
static enum interpreter_code interpreter_of(const char *name)
{
	return !strncmp(name, "_PyEval_EvalFrameDefault", 24) ? INTERPRETER_LOOP :
	       !strncmp(name, "_TAIL_CALL_", 11)	      ? INTERPRETER_PART :
								NO_INTERPRETER;
}

static bool is_python_call(const char *name)
{
	static const char *const names[] = { "_PyEval_Vector", "_PyEval_EvalFrame", "_PyFunction_Vectorcall",
					     "PyEval_EvalCode", "_PyEval_EvalCodeWithName" };

	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void find_place(struct symbols *s, u64 addr, struct code_place *p)
{
	const struct elf_function *sym = last_before(s, addr);
	u64 start = 0, size = 0;
	bool table = !elf__function_at(s->elf, addr, &start, &size);

	/* a symbol of assembly may have no size: its end is that in the unwind tables */
	if (sym && (addr - sym->addr < sym->size || (!sym->size && table && sym->addr >= start)))
		choose_name(s, sym, p->text, sizeof(p->text));
	if (*p->text) {
		p->name = p->text;
		p->function = sym->addr;
		p->has_function = true;
		p->interpreter = interpreter_of(p->text);
		p->python_call = is_python_call(p->text);
	} else {
		p->function = table ? start : addr;
		p->has_function = table;
		p->name = table && collector__has(&s->collector, start) ? COLLECTOR_NAME : NULL;
	}
	p->unwind_error = table ? elf__unwind(s->elf, addr, &p->unwind) : -ENOENT;
}

const struct code_place *symbols__at(struct symbols *s, u64 offset)
{
	u64 addr;

	if (!elf__address_of(s->elf, offset, &addr))
		return NULL;
	s->place = (struct code_place){};
	find_place(s, addr, &s->place);
	if (s->lines)
		dwarf_lines__at(s->lines, addr, &s->place.source);
	return &s->place;
}
