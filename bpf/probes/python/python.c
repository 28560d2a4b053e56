// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Host code of CPython's events: finds the probe sites. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf/usdt.h"
#include "python.h"
#include "python_find.h"
#include "record/family.h"
#include "util/array.h"

#define CLONES_MAX 4

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return elf__provides(elf, "PyEval_RestoreThread") && elf__provides(elf, "_PyRuntime");
}

static bool free_threaded(struct elf *elf)
{
	struct elf_symbol sym;

	return !elf__find_symbol(elf, "_Py_MergeZeroLocalRefcount", &sym);
}

/* What is traced of an object, and what is not. */
struct found {
	struct elf *elf;
	struct placer *placer;
	struct site_list *out;
	u32 gc_start, gc_done, import_start, import_done; /* USDT probes; compilers may duplicate one */
	bool only_count;
	int error;
};

static void add(struct found *f, const struct site *site)
{
	if (!f->error)
		f->error = site_list__add_site(f->out, site);
}

/* Adds the cheapest probe site behind an address at which a function begins. */
static void add_entry(struct found *f, u64 addr, u64 size, const char *program)
{
	struct site site = { .program = program };
	struct place_site where;
	const char *why;

	placer__entry(f->placer, addr, size, &where, &why);
	if (!elf__offset(f->elf, where.addr, &site.offset))
		add(f, &site);
}

static u64 cookie_of(const struct usdt_arg *a)
{
	if (a->size != 4 && a->size != 8)
		return 0;
	return PYTHON_ARG_KNOWN | (a->size == 8 ? PYTHON_ARG_WIDE : 0) | (a->memory ? PYTHON_ARG_MEMORY : 0) |
	       (u64)a->reg << PYTHON_ARG_REGISTER | (u64)(u16)a->displacement << PYTHON_ARG_DISPLACEMENT;
}

static int on_usdt(const struct usdt *probe, void *arg)
{
	static const struct {
		const char *probe, *program;
		u32 count;
	} all[] = {
		{ "gc__start", "python_gc_start", offsetof(struct found, gc_start) },
		{ "gc__done", "python_gc_done", offsetof(struct found, gc_done) },
		{ "import__find__load__start", "python_import_start", offsetof(struct found, import_start) },
		{ "import__find__load__done", "python_import_done", offsetof(struct found, import_done) },
	};
	struct found *f = arg;

	for (u32 i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(probe->name, all[i].probe))
			continue;
		++*(u32 *)((char *)f + all[i].count);
		if (!f->only_count)
			add(f, &(struct site){ .offset = probe->offset,
					       .program = all[i].program,
					       .cookie = cookie_of(&probe->args[0]),
					       .counter = probe->semaphore });
	}
	return 0;
}

static void add_imports(struct found *f, const char **why)
{
	u32 version = python_find__version(f->elf) >> 16;
	struct import_place place;
	struct site site = { .program = "python_import_audit" };

	/* up to this version the offset of a str's characters is known; nothing in the file has it */
	*why = "how this version stores names is not known";
	if (version > 0x030d || free_threaded(f->elf))
		return;
	if (python_find__import(f->elf, f->placer, &place, why))
		return;
	*why = "";
	site.cookie = (u64)(version >= 0x030c ? 40 : 48) << PYTHON_STR_AT |
		      (place.name_fourth ? PYTHON_NAME_FOURTH : 0);
	if (!elf__offset(f->elf, place.audit, &site.offset))
		add(f, &site);
	site = (struct site){ .program = "python_import_done" };
	for (u32 i = 0; i < place.n_done; i++)
		if (!elf__offset(f->elf, place.after_calls[i], &site.offset))
			add(f, &site);
}

static bool add_collections(struct found *f)
{
	struct elf_symbol clones[CLONES_MAX];
	u32 n = python_find__clones(f->elf, "invoke_gc_callback", clones, CLONES_MAX);

	for (u32 i = 0; i < n; i++)
		add_entry(f, clones[i].addr, clones[i].size, "python_gc_callback");
	return n;
}

static void add_threads(struct found *f)
{
	static const char *const names[] = { "PyThread_start_joinable_thread", "PyThread_start_new_thread" };
	struct elf_symbol found[2];

	elf__find_symbols(f->elf, names, 2, found);
	for (u32 i = 0; i < 2; i++)
		if (found[i].name && found[i].function)
			add_entry(f, found[i].addr, found[i].size, "python_thread_start");
}

static int sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out, char *why,
		 size_t len)
{
	struct found f = { .elf = elf, .out = out, .only_count = session__test_switch("no-usdt") };
	bool usdt_gc, usdt_import, gc = true;
	const char *no_imports = "";

	f.placer = placer__new(elf, place__shadow_stack(elf));
	if (!f.placer)
		return -ENOMEM;
	usdt__each(elf, "python", on_usdt, &f);
	usdt_gc = !f.only_count && f.gc_start && f.gc_done;
	usdt_import = !f.only_count && f.import_start && f.import_done;
	if (!usdt_import)
		add_imports(&f, &no_imports);
	if (!usdt_gc)
		gc = add_collections(&f);
	add_threads(&f);
	placer__free(f.placer);
	if (*no_imports)
		snprintf(why, len, "imports%s are not traced: it has no USDT probes, %s%s",
			 gc ? "" : " and garbage collections", gc ? "and " : "it has no symbols, and ", no_imports);
	else if (!gc)
		snprintf(why, len, "garbage collections are not traced: it has neither USDT probes nor symbols");
	return f.error;
}

static const struct family_part parts[] = {
	FAMILY_PART("python_gc_*", "garbage collections"),
	FAMILY_PART("python_import_*", "imports"),
	FAMILY_PART("python_thread_start", "starts of threads"),
	FAMILY_PART("python_forked", "processes that fork"),
	FAMILY_PART("python_exited", "what was open when a process ended"),
	FAMILY_PART("python_execed", "what was open at an exec"),
	FAMILY_PART("python_open", "what was open when the recording stopped"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(python_host) = {
	.name = "python",
	.parts = parts,
	.python = true,
	.is_runtime = is_runtime,
	.sites = sites,
};
