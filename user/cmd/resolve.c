// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/resolve.h"

#include "attach/library.h"
#include "cmd/cmd.h"
#include "output/text.h"
#include "process/mapped.h"
#include "process/mounts.h"
#include "process/procs.h"
#include "record/family.h"
#include "sandbox/bounded.h"
#include "sandbox/memory_limit.h"
#include "sandbox/privileges.h"
#include "site/place.h"
#include "util/map.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 900 /* files of a process; below the usual limit of open files */

static const struct column site_columns[] = {
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },	      { "object", "Object", VALUE_TEXT, SHOW_NEVER },
	{ "symbol", "Function", VALUE_TEXT, SHOW_PLAIN },     { "place", "Site", VALUE_TEXT, SHOW_PLAIN },
	{ "address", "Address", VALUE_U64, SHOW_HEX },	      { "instruction", "Instruction", VALUE_TEXT, SHOW_PLAIN },
	{ "offset_bytes", "Offset", VALUE_S64, SHOW_PLAIN },  { "cost", "Cost", VALUE_TEXT, SHOW_PLAIN },
	{ "why", "Why not cheaper", VALUE_TEXT, SHOW_PLAIN },
};

static const struct column total_columns[] = {
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "object", "Object", VALUE_TEXT, SHOW_PLAIN },
	{ "functions", "Functions", VALUE_U64, SHOW_COUNT },
	{ "cheap_entries", "Cheap entries", VALUE_U64, SHOW_COUNT },
	{ "cheap_entries_percent", "%", VALUE_DOUBLE, SHOW_PERCENT },
	{ "placed", "Placed functions", VALUE_U64, SHOW_COUNT },
	{ "placed_exits", "Exits found", VALUE_U64, SHOW_COUNT },
	{ "cheap_exits", "Exits all cheap", VALUE_U64, SHOW_COUNT },
	{ "cheap_exits_percent", "%", VALUE_DOUBLE, SHOW_PERCENT },
	{ "places", "Places", VALUE_U64, SHOW_COUNT },
};

struct totals {
	u64 functions, cheap_entries, placed, placed_exits, cheap_exits, places;
};

struct resolver {
	const struct embedded *bpf;
	struct table *places, *total;
	const char *glob; /* --placed */
	/* the object being examined */
	struct elf *elf;
	struct placer *placer;
	const char *path;
	const char *family;
	const struct section *section; /* NULL: --placed */
	const char *pattern;
	struct totals sum;
	struct map functions; /* functions of this family by address */
	struct map objects; /* by device and inode */
	u32 pid;
	struct mapped {
		int fd;
		char *path;
	} files[FILES_MAX]; /* of the process */
	u32 n_files;
	const struct scope *scope;
	const char *remote; /* file system of files that were skipped as remote */
	u32 n_remote, n_untrusted;
	u32 n_objects, n_found;
	u64 hints; /* families to pass a hint to is_runtime */
	int error;
};

static void add_row(struct resolver *r, const char *symbol, const char *place, u64 addr, s64 offset, int cost,
		    const char *why)
{
	static const char *const costs[] = { [PLACE_EMULATED] = "emulated", [PLACE_STEPPED] = "stepped" };
	char text[192];

	table__add(r->places, V_TEXT(r->family), V_TEXT(r->path), V_TEXT(symbol), V_TEXT(place),
		   cost < 0 ? V_NONE : V_U64(addr),
		   V_TEXT(cost < 0 ? NULL : placer__text(r->placer, addr, text, sizeof(text))),
		   cost < 0 ? V_NONE : V_S64(offset), V_TEXT(cost < 0 ? "none" : costs[cost]), V_TEXT(why));
	r->sum.places += cost >= 0;
}

static void add_placed(struct resolver *r, const struct elf_symbol *sym)
{
	static const char *const kinds[] = { "entry", "exit", "unwind" };
	struct placement where;

	if (placer__function(r->placer, sym->addr, sym->size, &where)) {
		r->error = -ENOMEM;
		return;
	}
	r->sum.placed++;
	r->sum.placed_exits += where.exits;
	r->sum.cheap_exits += where.exits && !where.exits_why;
	r->sum.cheap_entries += where.sites[0].cost == PLACE_EMULATED;
	for (u32 i = 0; i < where.n; i++) {
		const struct place_site *s = &where.sites[i];
		const char *why = s->kind == PLACE_ENTRY   ? where.entry_why :
				  s->cost == PLACE_STEPPED ? where.exits_why :
							     NULL;

		add_row(r, sym->name, kinds[s->kind], s->addr, (s64)(s->addr - sym->addr), s->cost, why);
	}
	if (!where.exits)
		add_row(r, sym->name, kinds[PLACE_EXIT], 0, 0, -1, where.exits_why);
	if (where.unwind_why)
		add_row(r, sym->name, kinds[PLACE_UNWIND], 0, 0, -1, where.unwind_why);
}

static void add_function(struct resolver *r, const struct elf_symbol *sym)
{
	bool placed = !r->section || r->section->kind == SECTION_PLACED;
	struct place_site site;
	const char *why;
	bool *seen;

	if (!sym->function || !sym->offset)
		return;
	if (r->section && r->section->kind == SECTION_SPAN && !strncmp(sym->name, "_Z", 2))
		return;
	seen = map__get(&r->functions, &sym->addr);
	if (!seen)
		r->error = -ENOMEM;
	if (!seen || *seen)
		return;
	*seen = true;
	r->sum.functions++;
	if (placed) {
		add_placed(r, sym);
		return;
	}
	placer__entry(r->placer, sym->addr, sym->size, &site, &why);
	r->sum.cheap_entries += site.cost == PLACE_EMULATED;
	add_row(r, sym->name, "entry", site.addr, (s64)(site.addr - sym->addr), site.cost, why);
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct resolver *r = arg;

	/* --placed may match local symbols; a ".cold" part that the compiler moved out is no function. */
	if ((sym->dynamic ? sym->default_version : !r->section) && !strstr(sym->name, ".cold") &&
	    !fnmatch(r->pattern, sym->name, 0))
		add_function(r, sym);
	return r->error;
}

static void add_program(struct resolver *r, const struct program *p)
{
	const char *list = p->section.rest;
	struct elf_symbol sym;
	char name[512];

	r->section = &p->section;
	r->pattern = name;
	while (section__next_function(&list, name, sizeof(name))) {
		if (strpbrk(name, "*?["))
			elf__each_symbol(r->elf, on_symbol, r);
		else if (!elf__find_symbol(r->elf, name, &sym))
			add_function(r, &sym);
	}
}

/* Returns the address of the code at this file offset, 0 if there is none. */
static u64 address_of(struct elf *elf, u64 offset)
{
	u64 addr, size, start;

	for (u32 i = 0; elf__text(elf, i, &addr, &size); i++)
		if (!elf__offset(elf, addr, &start) && offset >= start && offset - start < size)
			return addr + (offset - start);
	return 0;
}

static void add_sites(struct resolver *r, const struct schema_family *f)
{
	const struct family_host *h = family_host__find(f->name);
	u64 own[FAMILY_FACTS_MAX / sizeof(u64)] = {};
	struct site_list list = {};
	char why[256] = "";

	if (!h || !h->is_runtime || !h->sites || !h->is_runtime(r->elf, r->path, r->hints & FAMILY_BIT(f->id)))
		return;
	if (h->sites(NULL, r->elf, r->path, own, &list, why, sizeof(why)) == SITES_HINT)
		r->hints |= FAMILY_BIT(f->id);
	for (u32 i = 0; i < list.n; i++) {
		const struct program *p = probes__program(&r->bpf->probes, list.sites[i].program);
		u64 addr = address_of(r->elf, list.sites[i].offset);
		bool cheap = placer__emulated(r->placer, addr);

		if (!p)
			continue;
		r->sum.functions++;
		r->sum.cheap_entries += cheap;
		add_row(r, list.sites[i].name ? list.names[list.sites[i].name - 1] : p->section.rest, "site", addr, 0,
			cheap ? PLACE_EMULATED : PLACE_STEPPED, NULL);
	}
	if (*why)
		add_row(r, "(its sites)", "site", 0, 0, -1, why);
	site_list__free(&list);
}

static void begin_family(struct resolver *r, const char *family)
{
	r->family = family;
	memset(&r->sum, 0, sizeof(r->sum));
	map__init(&r->functions, sizeof(u64), sizeof(bool));
}

static void end_family(struct resolver *r)
{
	const struct totals *t = &r->sum;

	map__free(&r->functions);
	if (!t->functions)
		return;
	r->n_found += t->functions;
	table__add(r->total, V_TEXT(r->family), V_TEXT(r->path), V_U64(t->functions), V_U64(t->cheap_entries),
		   V_DBL(table__percent(t->cheap_entries, t->functions)), V_U64(t->placed), V_U64(t->placed_exits),
		   V_U64(t->cheap_exits), t->placed ? V_DBL(table__percent(t->cheap_exits, t->placed)) : V_NONE,
		   V_U64(t->places));
}

/* A library may have another file name; its contents then decide. */
static bool is_library(const struct resolver *r, const struct section *s)
{
	return section__matches_library(s, r->path) ||
	       library__match(r->elf, &r->bpf->probes, s->library) == LIBRARY_YES;
}

static void add_object(struct resolver *r)
{
	const struct schema *schema = r->bpf->schema;

	for (u32 f = 0; f < schema->n_families; f++) {
		begin_family(r, schema->families[f].name);
		PROGRAMS_EACH(p, &r->bpf->probes)
			if (p->family == &schema->families[f] && *p->section.library && is_library(r, &p->section))
				add_program(r, p);
		add_sites(r, &schema->families[f]);
		end_family(r);
	}
	if (r->glob) {
		begin_family(r, NULL);
		r->section = NULL;
		r->pattern = r->glob;
		elf__each_symbol(r->elf, on_symbol, r);
		end_family(r);
	}
}

/* Examines an open file. Returns 0 or negative errno. */
static int examine(struct resolver *r, int fd, const char *path)
{
	int err = elf__open(&r->elf, fd);

	if (err)
		return err;
	r->path = path;
	r->placer = placer__new(r->elf, place__shadow_stack(r->elf));
	if (r->placer)
		add_object(r);
	else
		err = -ENOMEM;
	placer__free(r->placer);
	elf__close(r->elf);
	r->n_objects += !err;
	return err;
}

static const char *no_memory(void)
{
	static char text[128];

	snprintf(text, sizeof(text), "it takes more than %llu MiB of memory, sonde's limit for files of this size",
		 memory_limit__bytes() >> 20);
	return text;
}

/* Gives up root and all rights after the files were opened and before they are parsed. */
static int leave_root(const struct resolver *r, int fd, char *err, size_t len)
{
	struct stat st;
	u64 bytes = fd >= 0 && !fstat(fd, &st) ? (u64)st.st_size : 0;
	int ret;

	mounts__forget();
	bounded__forget();
	for (u32 i = 0; i < r->n_files; i++)
		bytes += fstat(r->files[i].fd, &st) ? 0 : (u64)st.st_size;
	memory_limit__set(bytes);
	ret = privileges__reader(false);
	if (ret)
		snprintf(err, len, "cannot drop privileges: %s", cmd__reason(ret));
	return ret;
}

/* Decides as the attacher does with --trusted-files: it trusts files of root and of the process's user. */
static bool is_trusted(const struct resolver *r, int fd)
{
	struct stat file, process;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", r->pid);
	return r->scope->trusted_files != ANSWER_YES || (!fstat(fd, &file) && !file.st_uid) ||
	       (!stat(path, &process) && process.st_uid == file.st_uid);
}

/* Prints what the policy left out, and which option allows it. */
static void print_left_out(const struct resolver *r)
{
	if (r->n_remote)
		cmd__error(
			"process %u: left out: %u file%s on %s, whose server may never answer; --remote-files examines such files",
			r->pid, r->n_remote, text__s(r->n_remote), r->remote);
	if (r->n_untrusted)
		cmd__error(
			"process %u: %u file%s neither to root nor to its user, and get%s no probes (--trusted-files, %s)",
			r->pid, r->n_untrusted, r->n_untrusted == 1 ? " belongs" : "s belong",
			r->n_untrusted == 1 ? "s" : "", r->scope->trusted_from);
}

static void on_mapping(const struct mapping *m, void *arg)
{
	struct resolver *r = arg;
	struct {
		u64 dev, ino;
	} key = { m->dev, m->ino };
	bool *seen = map__get(&r->objects, &key);
	const char *remote;
	int fd;

	if (!seen || *seen || r->n_files == FILES_MAX)
		return;
	*seen = true;
	/* The path may name a newer file by now, which is as good an example. */
	fd = mapped__open(m, MAPPED_ANY, r->scope->remote_files == ANSWER_YES, &remote);
	if (remote) {
		r->remote = remote;
		r->n_remote++;
	}
	if (fd < 0)
		return;
	if (!is_trusted(r, fd)) {
		r->n_untrusted++;
		close(fd);
		return;
	}
	r->files[r->n_files] = (struct mapped){ fd, strdup(m->path) };
	if (r->files[r->n_files].path)
		r->n_files++;
	else
		close(fd);
}

static int examine_process(struct resolver *r, const char *target, char *err, size_t len)
{
	int ret = scope__allows(r->scope, r->pid, err, len) ? 0 : -EPERM;

	if (ret)
		return ret;
	ret = procs__each_mapping_of(r->pid, on_mapping, r);
	print_left_out(r);
	if (ret)
		snprintf(err, len, "process %s: its mappings can't be read: %s", target,
			 ret == -ETIMEDOUT ? BOUNDED_LATE : strerror(-ret));
	else
		ret = leave_root(r, -1, err, len);
	for (u32 i = 0; i < r->n_files; i++) {
		if (!ret && examine(r, r->files[i].fd, r->files[i].path) == -ENOMEM)
			cmd__error("%s: left out: %s", r->files[i].path, no_memory());
		close(r->files[i].fd);
		free(r->files[i].path);
	}
	if (ret)
		return ret;
	if (r->n_files == FILES_MAX)
		fprintf(stderr, "sonde: process %s: only its first %d files are examined\n", target, FILES_MAX);
	if (!r->n_found)
		snprintf(err, len, "process %s: maps no library that a family probes", target);
	return r->n_found ? 0 : -ENOENT;
}

static int examine_path(struct resolver *r, const char *target, char *err, size_t len)
{
	const char *remote;
	int fd = mapped__open_path(0, target, r->scope->remote_files == ANSWER_YES, &remote), ret = fd;

	if (remote)
		snprintf(err, len, "%s: it lies on %s, whose server may never answer; --remote-files examines it",
			 target, remote);
	else if (fd < 0)
		snprintf(err, len, "%s: %s", target, strerror(-ret));
	if (fd < 0)
		return ret;
	ret = leave_root(r, fd, err, len);
	if (ret) {
		close(fd);
		return ret;
	}
	ret = examine(r, fd, target);
	close(fd);
	if (ret)
		snprintf(err, len, "%s: %s", target,
			 ret == -ENOEXEC ? "is no ELF file with code for x86-64" :
			 ret == -ENOMEM	 ? no_memory() :
					   strerror(-ret));
	else if (!r->n_found)
		snprintf(err, len,
			 "%s: no family probes a library of this name, or none of its functions is in it; "
			 "--placed GLOB examines any",
			 target);
	return ret ? ret : r->n_found ? 0 : -ENOENT;
}

int resolve__add(const struct embedded *bpf, struct report_output *out, const struct resolve_options *options,
		 char *err, size_t len)
{
	struct resolver r = { .bpf = bpf, .glob = options->placed, .scope = &options->scope };
	const char *target = options->target;
	bool pid = *target && strspn(target, "0123456789") == strlen(target) && access(target, F_OK);
	int ret;

	r.places = REPORT_TABLE(out, "places", "Where probes are", site_columns);
	r.total = REPORT_TABLE(out, "totals", "How many are cheap", total_columns);
	map__init(&r.objects, 2 * sizeof(u64), sizeof(bool));
	r.pid = pid ? (u32)strtoul(target, NULL, 10) : 0;
	ret = pid ? examine_process(&r, target, err, len) : examine_path(&r, target, err, len);
	if (!ret && r.error) {
		ret = r.error;
		snprintf(err, len, "%s: %s", target, ret == -ENOMEM ? no_memory() : strerror(-ret));
	}
	map__free(&r.objects);
	return ret;
}
