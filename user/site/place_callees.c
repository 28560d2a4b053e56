// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Facts about the functions that a function calls, by name: from the file's own symbols, and from the relocations
 * that name imports and the PLT stubs that jump through them.
 */
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "site/place_private.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

struct known {
	u64 addr;
	u64 size; /* of a cold part */
	u32 callee; /* enum callee */
};

struct list {
	struct known *v;
	u32 n;
};

struct callees {
	struct elf *elf;
	struct list code, slots, cold;
	u64 *starts; /* start addresses of functions, sorted; read when needed */
	u32 n_starts;
	bool failed;
};

static const struct {
	const char *name; /* with a trailing '*': a prefix */
	enum callee callee;
} names[] = {
	{ "free", CALLEE_HARMLESS },
	{ "cfree", CALLEE_HARMLESS },
	{ "memcpy", CALLEE_HARMLESS },
	{ "memmove", CALLEE_HARMLESS },
	{ "memset", CALLEE_HARMLESS },
	{ "__tls_get_addr", CALLEE_HARMLESS },
	{ "pthread_mutex_unlock", CALLEE_HARMLESS },
	{ "_ZdlPv*", CALLEE_HARMLESS }, /* operator delete */
	{ "_ZdaPv*", CALLEE_HARMLESS },
	{ "__cxa_end_catch", CALLEE_HARMLESS },
	{ "_ZN3c106SymInt8release_Ev", CALLEE_HARMLESS },
	{ "_ZN2at13StepCallbacksD*", CALLEE_HARMLESS },
	{ "__stack_chk_fail", CALLEE_DIES },
	{ "__stack_chk_fail_local", CALLEE_DIES },
	{ "abort", CALLEE_DIES },
	{ "_exit", CALLEE_DIES },
	{ "__assert_fail", CALLEE_DIES },
	{ "__fortify_fail", CALLEE_DIES },
	{ "__chk_fail", CALLEE_DIES },
	{ "_ZSt9terminatev", CALLEE_DIES },
	{ "__clang_call_terminate", CALLEE_DIES },
	{ "__cxa_call_unexpected", CALLEE_UNWINDS },
	{ "__cxa_throw", CALLEE_UNWINDS },
	{ "__cxa_rethrow", CALLEE_UNWINDS },
	{ "__cxa_bad_cast", CALLEE_UNWINDS },
	{ "__cxa_bad_typeid", CALLEE_UNWINDS },
	{ "__cxa_throw_bad_array_new_length", CALLEE_UNWINDS },
	{ "_Unwind_Resume", CALLEE_UNWINDS },
	{ "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", CALLEE_UNWINDS },
	{ "_ZN3c106detail14torchCheckFail*", CALLEE_UNWINDS },
	{ "_ZN3c106detail23torchInternalAssertFail*", CALLEE_UNWINDS },
};

/* c10::intrusive_ptr<T, ...>::reset_() and reset_not_null_() of any T: they drop one reference */
static bool drops_reference(const char *name)
{
	return !strncmp(name, "_ZN3c1013intrusive_ptrI", 23) &&
	       (strstr(name, "E6reset_Ev") || strstr(name, "E15reset_not_null_EP"));
}

/* std::__throw_NAME(...) */
static bool throws(const char *name)
{
	if (strncmp(name, "_ZSt", 4))
		return false;
	for (name += 4; *name >= '0' && *name <= '9'; name++)
		;
	return !strncmp(name, "__throw_", 8);
}

enum callee callee__by_name(const char *name)
{
	if (name[0] == '_' && name[1] == 'Z') {
		if (drops_reference(name))
			return CALLEE_HARMLESS;
		if (throws(name))
			return CALLEE_UNWINDS;
	}
	for (u32 i = 0; i < ARRAY_LEN(names); i++) {
		const char *want = names[i].name;
		size_t len;

		/* this runs for each of the file's symbols */
		if (want[0] != name[0] || (name[0] && want[1] != name[1]))
			continue;
		len = strcspn(want, "*");
		/* the compiler's clones of a function have a suffix: .isra.0, .part.0 */
		if (!strncmp(name, want, len) && (want[len] || !name[len] || name[len] == '.'))
			return names[i].callee;
	}
	return CALLEE_UNKNOWN;
}

static void add(struct callees *c, struct list *list, u64 addr, u64 size, enum callee callee)
{
	if (!array__push(list->v, list->n, (struct known){ addr, size, callee })) {
		c->failed = true;
		return;
	}
}

COMPARE_BY(by_address, struct known, ASCENDING(addr))

static void sort(struct list *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), by_address);
}

/* The last entry that starts at or before addr. */
static const struct known *find(const struct list *list, u64 addr)
{
	u32 n = SEARCH(list->n, i, list->v[i].addr <= addr);

	return n ? &list->v[n - 1] : NULL;
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct callees *c = arg;
	enum callee callee;

	if (!sym->function)
		return c->failed;
	callee = callee__by_name(sym->name);
	if (callee != CALLEE_UNKNOWN)
		add(c, &c->code, sym->addr, 0, callee);
	if (!sym->dynamic && sym->size && strstr(sym->name, ".cold"))
		add(c, &c->cold, sym->addr, sym->size, 0);
	return c->failed;
}

/* Stores the pointers that the loader fills with the addresses of known imports. */
static bool on_slot(const char *name, u64 slot, void *arg)
{
	enum callee callee = callee__by_name(name);
	struct callees *c = arg;

	if (callee != CALLEE_UNKNOWN)
		add(c, &c->slots, slot, 0, callee);
	return !c->failed;
}

static void on_stub(u64 stub, u64 slot, void *arg)
{
	struct callees *c = arg;
	enum callee callee = callees__slot(c, slot);

	if (callee != CALLEE_UNKNOWN)
		add(c, &c->code, stub, 0, callee);
}

struct callees *callees__new(struct elf *elf)
{
	struct callees *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->elf = elf;
	elf__each_slot(elf, on_slot, c);
	sort(&c->slots);
	if (c->slots.n)
		elf__each_stub(elf, on_stub, c);
	elf__each_symbol(elf, on_symbol, c);
	sort(&c->code);
	sort(&c->cold);
	if (c->failed) {
		callees__free(c);
		return NULL;
	}
	return c;
}

void callees__free(struct callees *c)
{
	if (!c)
		return;
	free(c->code.v);
	free(c->slots.v);
	free(c->cold.v);
	free(c->starts);
	free(c);
}

enum callee callees__at(const struct callees *c, u64 addr)
{
	const struct known *k = find(&c->code, addr);

	return k && k->addr == addr ? (enum callee)k->callee : CALLEE_UNKNOWN;
}

enum callee callees__slot(const struct callees *c, u64 slot)
{
	const struct known *k = find(&c->slots, slot);

	return k && k->addr == slot ? (enum callee)k->callee : CALLEE_UNKNOWN;
}

bool callees__cold(const struct callees *c, u64 addr, u64 *start, u64 *size)
{
	const struct known *k = find(&c->cold, addr);

	if (!k || addr - k->addr >= k->size)
		return false;
	*start = k->addr;
	*size = k->size;
	return true;
}

static int on_start(const struct elf_function *f, void *arg)
{
	struct callees *c = arg;

	if (!array__push(c->starts, c->n_starts, f->addr)) {
		c->failed = true;
		return 1;
	}
	return 0;
}

bool callees__symbol_between(struct callees *c, u64 from, u64 to)
{
	u32 next;

	if (!c->starts) {
		elf__each_function(c->elf, on_start, c);
		if (c->n_starts)
			qsort(c->starts, c->n_starts, sizeof(*c->starts), compare__u64);
	}
	if (c->failed)
		return true;
	next = SEARCH(c->n_starts, i, c->starts[i] <= from);
	return next < c->n_starts && c->starts[next] <= to;
}
