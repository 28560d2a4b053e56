// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the sites of each family's programs in a file, and the facts that its host code needs. Runs in a child process
 * (record/examine/examine.h), which the file may compromise. Its changes to memory, and to the session, end with the
 * child.
 */
#include "attach/library.h"
#include "elf/debug.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "record/stacks/python.h"
#include "sandbox/message.h"
#include "site/place.h"
#include "util/map.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct find {
	struct session *s;
	struct elf *elf;
	const struct file_question *q;
	int sock;
	const struct program *program; /* names the library whose functions are looked up */
	const char *pattern;
	bool copy; /* the library is linked into the object: its functions are not exported */
	bool debug_sought;
	bool is_runtime; /* the file is a runtime of some family */
	struct placer *placer; /* created when needed */
	struct map taken; /* sites by offset and section kind */
	u32 n_names, n_libraries;
	struct found_site batch[SITES_BATCH];
	u32 n_batch, n_sites;
	u32 functions, unplaced; /* number of placed calls, and of those that can't be placed */
	char why[160]; /* the reason for the first of these */
	int error;
};

static void send_batch(struct find *p)
{
	if (p->n_batch && answer__send(p->sock, ANSWER_SITES, p->n_batch, p->batch, p->n_batch * sizeof(*p->batch)))
		p->error = -EPIPE;
	p->n_batch = 0;
}

static void add_site(struct find *p, const struct found_site *site)
{
	if (p->n_sites == FILE_SITES_MAX) {
		p->error = -E2BIG;
		return;
	}
	p->batch[p->n_batch++] = *site;
	p->n_sites++;
	if (p->n_batch == SITES_BATCH)
		send_batch(p);
}

static u32 number_of(const struct find *p, const struct program *program)
{
	return program - p->s->embedded.probes.programs;
}

/* Sends a function's name, once; returns the number by which its sites refer to it. */
static u32 send_name(struct find *p, const char *name)
{
	char text[FILE_NAME_MAX];

	if (p->n_names == FILE_NAMES_MAX) {
		p->error = -E2BIG;
		return SITE_NO_NAME;
	}
	snprintf(text, sizeof(text), "%s", name);
	if (answer__send(p->sock, ANSWER_NAME, 0, text, strlen(text) + 1))
		p->error = -EPIPE;
	return p->n_names++;
}

/* Returns false if the site was added before: two names of one function (an alias) are one call. */
static bool take_site(struct find *p, u64 offset, enum section_kind kind)
{
	struct {
		u64 offset, kind;
	} key = { offset, kind };
	bool *taken = map__get(&p->taken, &key);

	if (!taken)
		p->error = -ENOMEM;
	if (!taken || *taken)
		return false;
	*taken = true;
	return true;
}

static struct placer *get_placer(struct find *p)
{
	if (!p->placer)
		p->placer = placer__new(p->elf, place__shadow_stack(p->elf));
	if (!p->placer)
		p->error = -ENOMEM;
	return p->placer;
}

/* Adds a call whose ends are located in the function's code: all of its sites are probed, or none. */
static void add_placed(struct find *p, const struct elf_symbol *sym)
{
	struct found_site found = { .program = number_of(p, p->program) };
	struct placement where;

	if (placer__function(p->placer, sym->addr, sym->size, &where)) {
		p->error = -ENOMEM;
		return;
	}
	p->functions++;
	if (!where.exits) {
		if (!p->unplaced++)
			snprintf(p->why, sizeof(p->why), "%.80s: %s", sym->name, where.exits_why);
		return;
	}
	found.name = send_name(p, sym->name);
	if (found.name == SITE_NO_NAME)
		return;
	for (u32 i = 0; i < where.n; i++) {
		found.bits = site_list__placed_cookie(&where.sites[i]);
		if (!elf__offset(p->elf, where.sites[i].addr, &found.offset) &&
		    take_site(p, found.offset, SECTION_PLACED))
			add_site(p, &found);
	}
}

static void add_function(struct find *p, const struct elf_symbol *sym)
{
	struct found_site found = { .program = number_of(p, p->program) };
	enum section_kind kind = p->program->section.kind;
	struct place_site site;
	const char *why;

	if (!sym->function || !sym->offset)
		return;
	/* a glob may match C++ names, whose returns are not safe to probe */
	if (kind == SECTION_SPAN && !strncmp(sym->name, "_Z", 2))
		return;
	/* keyed by its entry, so that each function is placed only once */
	if (!get_placer(p) || !take_site(p, ~sym->offset, kind))
		return;
	if (kind == SECTION_PLACED) {
		add_placed(p, sym);
		return;
	}
	placer__entry(p->placer, sym->addr, sym->size, &site, &why);
	if (elf__offset(p->elf, site.addr, &found.offset))
		return;
	found.name = send_name(p, sym->name);
	if (found.name != SITE_NO_NAME)
		add_site(p, &found);
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct find *p = arg;

	if ((sym->dynamic || p->copy) && sym->default_version && !fnmatch(p->pattern, sym->name, 0))
		add_function(p, sym);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a program's section except for globs, each once and sorted. The array and its text are one block. */
static const char **split_names(const struct program *program, u32 *n)
{
	const char *list = program->section.rest, **names;
	size_t len = strlen(list), max = len / 2 + 1, used = 0;
	char name[512], *text;

	*n = 0;
	names = malloc(max * sizeof(*names) + len + 1);
	if (!names)
		return NULL;
	text = (char *)(names + max);
	while (section__next_function(&list, name, sizeof(name))) {
		if (strpbrk(name, "*?["))
			continue;
		names[(*n)++] = strcpy(text + used, name);
		used += strlen(name) + 1;
	}
	qsort(names, *n, sizeof(*names), compare_names);
	for (u32 i = len = 0; i < *n; i++)
		if (!i || strcmp(names[i], names[i - 1]))
			names[len++] = names[i];
	*n = len;
	return names;
}

/* Requests a debug file from the worker, which has the opener. Returns a descriptor or negative errno. */
static int open_debug(u32 pid, const char *path, void *arg)
{
	struct find *p = arg;
	struct debug_reply reply;
	int fd = -1;

	if (answer__send(p->sock, ANSWER_DEBUG, pid != 0, path, strlen(path) + 1) ||
	    message__receive(p->sock, &reply, sizeof(reply), &fd) != sizeof(reply))
		return -EPIPE;
	return reply.result ? reply.result : fd;
}

/* Adds symbols from debug files, once. Returns whether there are more symbols now. */
static bool add_debug(struct find *p)
{
	const struct debug_search search = {
		/* the worker knows which process it is */
		.pid = !p->q->is_preattached,
		.path = p->q->path,
		.open = open_debug,
		.arg = p,
	};
	char why[512];

	if (p->debug_sought || !elf__stripped(p->elf))
		return false;
	p->debug_sought = true;
	if (!debug__add(p->elf, &search, why, sizeof(why)))
		return true;
	if (*why)
		answer__send(p->sock, ANSWER_NOTE, 0, why, strlen(why) + 1);
	return false;
}

/* Finds the functions of this file that a program's section names. */
static void find_names(struct find *p, const struct program *program)
{
	struct elf_symbol *found;
	const char **names;
	u32 n;

	p->program = program;
	names = split_names(program, &n);
	found = names ? calloc(n + 1, sizeof(*found)) : NULL;
	if (!found)
		p->error = -ENOMEM;
	else if (elf__find_symbols(p->elf, names, n, found) == n && n && add_debug(p))
		elf__find_symbols(p->elf, names, n, found);
	for (u32 i = 0; found && i < n; i++)
		if (found[i].name)
			add_function(p, &found[i]);
	free(found);
	free(names);
}

/* Finds the functions that the globs of its section match. */
static void find_globs(struct find *p, const struct program *program)
{
	const char *list = program->section.rest;
	char name[512];

	p->program = program;
	p->pattern = name;
	while (section__next_function(&list, name, sizeof(name)))
		if (strpbrk(name, "*?["))
			elf__each_symbol(p->elf, on_symbol, p);
}

/*
 * Does the file contain a copy of the library? Only libcudart is linked statically so that it can be recognized: the
 * names of its private symbols are libcudart_static_HASH. A file that needs the shared library has no copy of it.
 */
static bool holds_copy(const struct find *p, const char *library)
{
	return !strcmp(library, "libcudart.so") && !elf__needs(p->elf, library) &&
	       elf__names_hold(p->elf, "libcudart_static_");
}

/*
 * Decided by the contents of the file. A file that only has the library's name is reported, because its calls will
 * not be recorded.
 */
static bool is_library(struct find *p, const struct program *program)
{
	const struct section *section = &program->section;
	struct found_library library = { .program = number_of(p, program) };
	const char *soname = elf__soname(p->elf);

	/* its functions need not be compared with the library's, which takes long in a large file */
	if (*soname && !section__is_library(section->library, soname) && !section__matches_library(section, p->q->path))
		return false;
	library.match = library__match(p->elf, &p->s->embedded.probes, section->library);
	if (library.match == LIBRARY_YES || !section__matches_library(section, p->q->path) || p->q->is_preattached ||
	    holds_copy(p, section->library))
		return library.match == LIBRARY_YES;
	if (p->n_libraries++ < FILE_LIBRARIES_MAX)
		answer__send(p->sock, ANSWER_LIBRARY, 0, &library, sizeof(library));
	return false;
}

/*
 * Returns true if the object is a library that the family probes, or has one linked in. Names come first: a function
 * that a program names belongs to that program, even if a glob of another program matches it.
 */
static bool find_library(struct find *p, const struct schema_family *f)
{
	const struct probes *probes = &p->s->embedded.probes;
	const char *asked = "";
	bool whole = false, copy = false, found = false;

	for (u32 i = 0; i < 2 * probes->n_programs; i++) {
		const struct program *program = &probes->programs[i % probes->n_programs];
		const struct section *section = &program->section;

		if (!program->enabled || program->family != f || !section->library[0])
			continue;
		if (strcmp(asked, section->library)) {
			asked = section->library;
			whole = is_library(p, program);
			copy = !whole && holds_copy(p, asked);
		}
		if (!whole && !copy)
			continue;
		p->copy = copy;
		if (i < probes->n_programs)
			find_names(p, program);
		else
			find_globs(p, program);
		found = true;
	}
	return found;
}

/* Finds a stripped copy by its debug file, or at least reports it. */
static bool find_hidden(struct find *p, const struct schema_family *f, char *why, size_t len)
{
	const struct family_host *h = family_host__find(f->name);

	if (!h || !h->hides_library || !elf__stripped(p->elf) || !h->hides_library(p->elf, why, len))
		return false;
	if (add_debug(p) && find_library(p, f))
		*why = '\0';
	return true;
}

/* Sends the sites that host code has found, and the names of their probes first. */
static void send_sites(struct find *p, const struct site_list *list)
{
	u32 first = p->n_names;

	for (u32 i = 0; i < list->n_names; i++)
		if (send_name(p, list->names[i]) == SITE_NO_NAME)
			return;
	for (u32 i = 0; i < list->n; i++) {
		const struct site *site = &list->sites[i];
		const struct program *program = probes__program(&p->s->embedded.probes, site->program);

		if (program && program->enabled && take_site(p, site->offset, SECTION_SITE))
			add_site(p, &(struct found_site){ .program = number_of(p, program),
							  .name = site->name ? first + site->name - 1 : SITE_NO_NAME,
							  .offset = site->offset,
							  .bits = site->cookie,
							  .counter = site->counter });
	}
}

/* Finds the sites of the family's host code. Returns true if the file is a runtime of the family. */
static bool find_sites(struct find *p, const struct schema_family *f, void *own, struct found_family *out)
{
	const struct family_host *h = family_host__find(f->name);
	bool python = family_host__python_requested(p->s, h) && python__is_cpython(p->elf);
	struct site_list sites = {};

	if (!h || !h->is_runtime || !h->is_runtime(p->elf, p->q->path, p->q->hints & FAMILY_BIT(f->id)))
		return python;
	if (h->sites) {
		int err = h->sites(p->s, p->elf, p->q->path, own, &sites, out->why, sizeof(out->why));

		out->hint = err == SITES_HINT;
		out->has_nothing = err == SITES_NONE;
		if (err < 0 && !*out->why)
			snprintf(out->why, sizeof(out->why), "%s", strerror(-err));
	}
	send_sites(p, &sites);
	site_list__free(&sites);
	return true;
}

static int find_family(struct find *p, const struct schema_family *f, struct file_facts *facts)
{
	struct found_family out = { .id = f->id };
	bool runtime;

	map__init(&p->taken, 2 * sizeof(u64), sizeof(bool));
	p->functions = p->unplaced = 0;
	*p->why = '\0';
	p->error = 0;
	runtime = find_library(p, f);
	if (!runtime) {
		out.hidden = find_hidden(p, f, out.why, sizeof(out.why));
		runtime = out.hidden;
	}
	runtime |= find_sites(p, f, facts->family_facts[f->id], &out);
	if (p->unplaced && !*out.why)
		snprintf(out.why, sizeof(out.why), "%u of %u functions are not traced: %s", p->unplaced, p->functions,
			 p->why);
	map__free(&p->taken);
	send_batch(p);
	out.error = p->error;
	p->is_runtime |= runtime;
	return runtime ? answer__send(p->sock, ANSWER_FAMILY, 0, &out, sizeof(out)) : 0;
}

static void fill_facts(struct elf *elf, struct file_facts *facts)
{
	u64 offset, addr, size;

	if (facts->n_segments)
		return;
	snprintf(facts->build_id, sizeof(facts->build_id), "%s", elf__build_id(elf));
	for (u32 i = 0; facts->n_segments < FILE_SEGMENTS_MAX && elf__text(elf, i, &addr, &size); i++)
		if (!elf__offset(elf, addr, &offset))
			facts->segments[facts->n_segments++] =
				(struct file_segment){ .addr = addr, .size = size, .offset = offset };
	facts->python.error =
		python__identify(elf, &facts->python.runtime, facts->python.why, sizeof(facts->python.why));
}

int find__file(struct session *s, struct elf *elf, int sock, const struct file_question *q, struct file_facts *facts)
{
	struct find *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	*p = (struct find){ .s = s, .elf = elf, .sock = sock, .q = q };
	if (python__is_walked(s) && python__is_cpython(elf)) {
		fill_facts(elf, facts);
		err = answer__send(sock, ANSWER_FACTS, 0, facts, sizeof(*facts));
	}
	for (u32 i = 0; i < s->embedded.schema->n_families && !err; i++) {
		const struct schema_family *f = &s->embedded.schema->families[i];

		if (s->load.family_on[f->id] && !(q->families & FAMILY_BIT(f->id)))
			err = find_family(p, f, facts);
	}
	/* of other files no facts are needed */
	if (!err && p->is_runtime) {
		fill_facts(elf, facts);
		err = answer__send(sock, ANSWER_FACTS, 0, facts, sizeof(*facts));
	}
	placer__free(p->placer);
	free(p);
	return err;
}
