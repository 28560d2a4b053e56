// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/symbols.h"
#include "record/collector.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/search.h"

#define SYMBOLS_MAX (4u << 20)
#define CACHE_MAX   (64u << 10) /* answers; beyond that the cache is cleared */

struct symbol {
	u64 addr, size;
	const char *name;
};

struct symbols {
	struct elf *elf;
	struct symbol *list; /* sorted by address */
	u32 n;
	struct map places; /* by address: struct code_place */
	bool is_python;
	struct collector collector; /* of a stripped CPython */
};

/* Adds functions, and symbols of hand-written assembly without a type. */
static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct symbols *s = arg;

	if (!sym->function || !sym->addr || s->n == SYMBOLS_MAX)
		return 0;
	s->is_python = s->is_python || !strcmp(sym->name, "PyGC_Collect");
	if (!array__push(s->list, s->n, (struct symbol){ .addr = sym->addr, .size = sym->size, .name = sym->name }))
		return -ENOMEM;
	return 0;
}

/* Counts leading underscores: of several names of one function, the one without them is the public one. */
static u32 count_underscores(const char *name)
{
	return strspn(name, "_");
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	/* the larger one first, which is retained */
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (count_underscores(x->name) != count_underscores(y->name))
		return count_underscores(x->name) < count_underscores(y->name) ? -1 : 1;
	return strcmp(x->name, y->name);
}

int symbols__new(struct symbols **out, struct elf *elf)
{
	struct symbols *s = calloc(1, sizeof(*s));
	struct symbol *fit;
	u32 kept = 0;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->elf = elf;
	map__init(&s->places, sizeof(u64), sizeof(struct code_place));
	elf__add_debugdata(elf);
	if (elf__each_symbol(elf, on_symbol, s)) {
		symbols__free(s);
		return -ENOMEM;
	}
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), compare);
	for (u32 i = 0; i < s->n; i++)
		if (!kept || s->list[i].addr != s->list[kept - 1].addr)
			s->list[kept++] = s->list[i];
	s->n = kept;
	fit = reallocarray(s->list, kept + 1, sizeof(*fit));
	if (fit) {
		s->list = fit;
	}
	if (s->is_python && elf__stripped(elf))
		collector__find(&s->collector, elf);
	*out = s;
	return 0;
}

void symbols__free(struct symbols *s)
{
	if (!s)
		return;
	map__free(&s->places);
	free(s->list);
	free(s);
}

u64 symbols__bytes(const struct symbols *s)
{
	return ((u64)s->n + 1) * sizeof(*s->list) + (u64)s->places.n * (sizeof(struct code_place) + 32);
}

/* Returns the last symbol at or before addr; NULL: there is none. */
static const struct symbol *before(const struct symbols *s, u64 addr)
{
	u32 n = SEARCH(s->n, i, s->list[i].addr <= addr);

	return n ? &s->list[n - 1] : NULL;
}

/* Returns whether it is (a part of, NAME.cold) an interpreter loop; with tail calls each bytecode is a function. */
static bool is_interpreter(const char *name)
{
	return !strncmp(name, "_PyEval_EvalFrameDefault", 24) || !strncmp(name, "_TAIL_CALL_", 11);
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

static void find(struct symbols *s, u64 addr, struct code_place *p)
{
	const struct symbol *sym = before(s, addr);
	u64 start = 0, size = 0;
	bool table = !elf__function_at(s->elf, addr, &start, &size);

	/* a symbol of assembly may have no size: its end is that in the unwind tables */
	if (sym && (addr - sym->addr < sym->size || (!sym->size && table && sym->addr >= start))) {
		p->name = sym->name;
		p->function = sym->addr;
		p->has_function = true;
		p->interpreter = is_interpreter(sym->name);
		p->python_call = is_python_call(sym->name);
	} else {
		p->function = table ? start : addr;
		p->has_function = table;
		p->name = table && collector__has(&s->collector, start) ? COLLECTOR_NAME : NULL;
	}
	p->unwind_error = table ? elf__unwind(s->elf, addr, &p->unwind) : -ENOENT;
}

/* Gets the address at an offset; false: it is not code. */
static bool address_of(struct elf *elf, u64 offset, u64 *addr)
{
	u64 start, size, at;

	for (u32 i = 0; elf__text(elf, i, &start, &size); i++) {
		if (elf__offset(elf, start, &at) || offset < at || offset - at >= size)
			continue;
		*addr = start + (offset - at);
		return true;
	}
	return false;
}

const struct code_place *symbols__at(struct symbols *s, u64 offset)
{
	struct code_place *p;
	u64 addr;

	if (!address_of(s->elf, offset, &addr))
		return NULL;
	p = map__find(&s->places, &addr);
	if (p)
		return p;
	if (s->places.n >= CACHE_MAX)
		map__free(&s->places);
	p = map__get(&s->places, &addr);
	if (p)
		find(s, addr, p);
	return p;
}
