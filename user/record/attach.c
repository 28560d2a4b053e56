// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The probes of one object: where each family's programs go in it, and their links. */
#include "attach/place.h"
#include "attach/verify_site.h"
#include "record/objects.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/map.h"

#define ENOTSUPP 524 /* include/linux/errno.h: the kernel's own, without a text in libc */

struct place {
	const struct program *program;
	u64 offset;
	u64 cookie;
	u64 counter; /* see struct site */
};

struct places {
	struct session *s;
	struct object *o;
	const struct program *program; /* whose functions are being looked for */
	const char *pattern;
	bool copy; /* the library is linked into the object: its functions are not exported */
	struct placer *placer; /* made when it is needed */
	struct map taken; /* places by offset and section kind */
	struct place *list;
	u32 n, max;
	u32 functions, unplaced; /* placed calls wanted, and those that can't be */
	char why[160]; /* the first of these */
	int error;
};

int site_list__add_site(struct site_list *list, const struct site *site)
{
	struct site *bigger = realloc(list->sites, (list->n + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	list->sites = bigger;
	list->sites[list->n++] = *site;
	return 0;
}

int site_list__add(struct site_list *list, u64 offset, const char *program)
{
	return site_list__add_site(list, &(struct site){ .offset = offset, .program = program });
}

static void add_place(struct places *p, const struct program *program, u64 offset, u64 cookie)
{
	struct place *bigger;

	if (p->n == p->max) {
		bigger = reallocarray(p->list, p->max * 2 + 64, sizeof(*bigger));
		if (!bigger) {
			p->error = -ENOMEM;
			return;
		}
		p->list = bigger;
		p->max = p->max * 2 + 64;
	}
	p->list[p->n++] = (struct place){ .program = program, .offset = offset, .cookie = cookie };
}

/* Two names of one function (an alias) are one call. */
static bool take(struct places *p, u64 offset, enum section_kind kind)
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

/* The cookie of a program's probe on a function, 0: there is no number left for it. */
static u64 cookie_of(struct places *p, const struct program *program, const char *name)
{
	u16 number = probes__number(&p->s->embedded.probes, program, name);

	if (!number)
		p->error = -E2BIG;
	return number;
}

static struct placer *get_placer(struct places *p)
{
	if (!p->placer)
		p->placer = placer__new(p->o->elf, place__shadow_stack(p->o->elf));
	if (!p->placer)
		p->error = -ENOMEM;
	return p->placer;
}

static u64 end_cookie(const struct place_site *site)
{
	return (site->kind == PLACE_UNWIND ? COOKIE_UNWIND : COOKIE_EXIT) |
	       (site->by_frame_pointer ? COOKIE_BY_FRAME_POINTER : 0) | (u64)(site->above / 8) << COOKIE_ABOVE_SHIFT;
}

/* A call whose ends are found in the function's code: all its probes, or none. */
static void add_placed(struct places *p, const struct elf_symbol *sym, u64 group)
{
	struct placement where;
	u64 offset, cookie;

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
	cookie = cookie_of(p, p->program, sym->name);
	for (u32 i = 0; cookie && i < where.n; i++)
		if (!elf__offset(p->o->elf, where.sites[i].addr, &offset) && take(p, offset, SECTION_PLACED))
			add_place(p, p->program, offset,
				  cookie | (i ? end_cookie(&where.sites[i]) : group << COOKIE_GROUP_SHIFT));
}

static void add_function(struct places *p, const struct elf_symbol *sym)
{
	u64 group = section__group(&p->program->section, sym->name), offset, cookie;
	enum section_kind kind = p->program->section.kind;
	struct place_site site;
	const char *why;

	if (!sym->function || !sym->offset)
		return;
	/* a glob may match C++ names, whose returns are not safe to probe */
	if (kind == SECTION_SPAN && !strncmp(sym->name, "_Z", 2))
		return;
	/* by its entry: where it is probed is asked only once */
	if (!get_placer(p) || !take(p, ~sym->offset, kind))
		return;
	if (kind == SECTION_PLACED) {
		add_placed(p, sym, group);
		return;
	}
	placer__entry(p->placer, sym->addr, sym->size, &site, &why);
	cookie = cookie_of(p, p->program, sym->name);
	if (cookie && !elf__offset(p->o->elf, site.addr, &offset))
		add_place(p, p->program, offset, cookie | group << COOKIE_GROUP_SHIFT);
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct places *p = arg;

	if ((sym->dynamic || p->copy) && sym->default_version && !fnmatch(p->pattern, sym->name, 0))
		add_function(p, sym);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a program's section but for globs, each once and sorted. The array and its text are one block. */
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

/* The functions that a program's section names, as far as this object has them. */
static void find_names(struct places *p, const struct program *program)
{
	struct elf_symbol *found;
	const char **names;
	u32 n;

	p->program = program;
	names = split_names(program, &n);
	found = names ? calloc(n + 1, sizeof(*found)) : NULL;
	if (!found)
		p->error = -ENOMEM;
	else if (elf__find_symbols(p->o->elf, names, n, found) == n && n && object__add_debug(p->s, p->o))
		elf__find_symbols(p->o->elf, names, n, found);
	for (u32 i = 0; found && i < n; i++)
		if (found[i].name)
			add_function(p, &found[i]);
	free(found);
	free(names);
}

/* The functions that the globs in its section match. */
static void find_globs(struct places *p, const struct program *program)
{
	const char *list = program->section.rest;
	char name[512];

	p->program = program;
	p->pattern = name;
	while (section__next_function(&list, name, sizeof(name)))
		if (strpbrk(name, "*?["))
			elf__each_symbol(p->o->elf, on_symbol, p);
}

/*
 * true: the object is a library that the family probes, or has one linked in. Names
 * first: a function is the program's that names it, whatever another's glob says.
 */
static bool find_library(struct places *p, const struct schema_family *f)
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
			whole = object__is_library(p->s, p->o, f, section);
			copy = !whole && object__holds_copy(p->o, asked);
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

/* A stripped copy is found by its debug file, or at least told. */
static bool find_hidden(struct places *p, const struct schema_family *f, char *why, size_t len)
{
	const struct family_host *h = family_host__find(f->name);

	if (!h || !h->hides_library || !elf__stripped(p->o->elf) || !h->hides_library(p->o->elf, why, len))
		return false;
	if (object__add_debug(p->s, p->o) && find_library(p, f))
		*why = '\0';
	return true;
}

/* The places that the family's host code finds. true: it is a runtime of the family. */
static bool find_sites(struct places *p, const struct family_host *h, char *why, size_t len)
{
	struct elf_symbol sym;
	bool python = family_host__python_asked(p->s, h) && !elf__find_symbol(p->o->elf, "_PyRuntime", &sym);
	struct site_list sites = {};

	if (!h || !h->is_runtime || !h->is_runtime(p->o->elf, p->o->path))
		return python;
	if (h->sites) {
		int err = h->sites(p->s, p->o->elf, p->o->path, &sites, why, len);

		if (err && !*why)
			snprintf(why, len, "%s", strerror(-err));
	}
	for (u32 i = 0; i < sites.n; i++) {
		const struct program *program = probes__program(&p->s->embedded.probes, sites.sites[i].program);

		u64 cookie = program && program->enabled ? cookie_of(p, program, program->section.rest) : 0;

		if (!cookie || !take(p, sites.sites[i].offset, SECTION_SITE))
			continue;
		add_place(p, program, sites.sites[i].offset, cookie | (sites.sites[i].cookie & ~0xffffULL));
		if (!p->error)
			p->list[p->n - 1].counter = sites.sites[i].counter;
	}
	free(sites.sites);
	return true;
}

/* Without session links: returns only in the processes that -p chose, a link each. */
static int attach_returns(struct session *s, const struct program *program, struct link_sites *sites, u64 *cookies)
{
	int err = 0;

	for (u32 i = 0; i < sites->n; i++)
		cookies[i] |= COOKIE_RETURN;
	sites->returns = true;
	for (u32 i = 0; i < s->n_targets && !err; i++) {
		sites->pid = s->targets[i].pid;
		err = session__link(s, program, s->span_method, sites, NULL);
		if (!err)
			process__set(s, sites->pid, PROCESS_RETURNS);
		else if (err == -ESRCH)
			err = 0;
	}
	return err;
}

/* One program's places in one link. */
static int attach_program(struct places *p, const struct program *program, u32 *attached)
{
	bool span = program->section.kind == SECTION_SPAN;
	u64 *offsets = calloc(p->n, sizeof(u64)), *cookies = calloc(p->n, sizeof(u64));
	u64 *counters = calloc(p->n, sizeof(u64));
	struct link_sites sites = {
		.fd = p->o->fd,
		.offsets = offsets,
		.cookies = cookies,
		.object = pause__object(program->family, p->o->id),
	};
	int err = offsets && cookies && counters ? 0 : -ENOMEM;

	for (u32 i = 0; i < p->n && !err; i++) {
		if (p->list[i].program != program)
			continue;
		offsets[sites.n] = p->list[i].offset;
		counters[sites.n] = p->list[i].counter;
		if (p->list[i].counter)
			sites.counters = counters;
		cookies[sites.n++] = p->list[i].cookie;
	}
	if (!err)
		err = session__link(p->s, program, span ? p->s->span_method : p->s->entry_method, &sites, attached);
	if (!err)
		err = pause__keep(p->s, program, p->s->entry_method, &sites);
	if (!err && sites.n && span && p->s->span_mode == SPAN_PAIR)
		err = attach_returns(p->s, program, &sites, cookies);
	free(offsets);
	free(cookies);
	free(counters);
	return err;
}

static void write_object(struct session *s, struct object *o, u16 family, u32 sites, enum attach_method method,
			 const char *why)
{
	struct meta_object r = {
		.event = session__event(s, ID_meta_object),
		.first = o->first,
		.live = sites ? o->live : 0,
		.dev = o->dev,
		.ino = o->ino,
		.path = session__intern(s, session__path(s, o->path)),
		.build_id = session__intern(s, elf__build_id(o->elf)),
		.why = session__intern(s, why),
		.sites = sites,
		.object = o->id,
		.family = family,
		.method = sites ? method : ATTACH_NONE,
		.ahead = o->ahead,
	};

	session__emit(s, &r, sizeof(r));
	if (s->started && sites && !process__is_foreign(s, o->pid))
		losses__add_of(s, o->pid, family, LOSS_BLIND, 1, o->first, o->live, o->id);
}

/* NVIDIA's own libraries are like that, a dozen of them in a process: nobody asked for each, and the trace names them. */
static void warn_hidden(struct session *s, const struct object *o, const struct schema_family *f, const char *why)
{
	if (!s->hidden++)
		session__warn(s, "%s: family %s: %s (`sonde info` names all such files)", o->path, f->name, why);
}

/* Sites that the file's own tables do not confirm: a debug file that is not the file's, or code that is not understood. */
static void note_refused(const struct session *s, const struct places *p, char *why, size_t len)
{
	if (s->refused_sites.n && !*why)
		snprintf(why, len, "%u of %u sites are not probed: offset %#llx: %s", s->refused_sites.n, p->n,
			 s->refused_sites.offset, site_verdict__text(s->refused_sites.verdict));
}

/* Why there are no probes, and how to have them. */
static void say_refused(const struct session *s, const struct object *o, int err, char *why, size_t len)
{
	struct stat st;

	if (err == -EACCES && s->args->trusted_files && !fstat(o->fd, &st))
		snprintf(
			why, len,
			"not probed (--trusted-files): it belongs to user %u, and no process of that user was seen to map it; "
			"without the option it is",
			st.st_uid);
	else if (err == -EPERM && !fstat(o->fd, &st) && st.st_mode & (S_ISUID | S_ISGID))
		snprintf(why, len, "not probed: it is a setuid or setgid program, which no option allows");
	else
		snprintf(why, len, "the kernel refused probes: %s",
			 err == -ENOTSUPP ? "an instruction that it can't probe" :
			 err == -EPIPE	  ? "the process that attaches them is gone" :
					    strerror(-err));
}

static void attach_family(struct session *s, struct object *o, const struct schema_family *f)
{
	struct places p = { .s = s, .o = o };
	u32 attached = 0, probes = s->embedded.probes.n;
	bool runtime, hidden = false, span = false;
	char why[256] = "";
	int err = 0;

	map__init(&p.taken, 2 * sizeof(u64), sizeof(bool));
	runtime = find_library(&p, f);
	if (!runtime)
		runtime = hidden = find_hidden(&p, f, why, sizeof(why));
	runtime |= find_sites(&p, family_host__find(f->name), why, sizeof(why));
	placer__free(p.placer);
	if (p.unplaced && !*why)
		snprintf(why, sizeof(why), "%u of %u functions are not traced: %s", p.unplaced, p.functions, p.why);
	if (!runtime) {
		map__free(&p.taken);
		return;
	}
	if (!o->id) {
		session__gave_up(s, o->path, "as many files as sonde keeps probes in have them already");
		map__free(&p.taken);
		free(p.list);
		return;
	}
	o->families |= 1u << f->id;
	s->refused_sites.n = 0;
	for (u32 i = 0; i < s->embedded.probes.n_programs && !err; i++) {
		const struct program *program = &s->embedded.probes.programs[i];

		if (program->enabled && program->family == f) {
			err = attach_program(&p, program, &attached);
			span |= program->section.kind == SECTION_SPAN;
		}
	}
	if (!err)
		err = p.error;
	note_refused(s, &p, why, sizeof(why));
	if (err) {
		say_refused(s, o, err, why, sizeof(why));
		session__warn(s, "%s: family %s: %s", o->path, f->name, why);
		s->not_attached++;
	} else if (*why && hidden) {
		warn_hidden(s, o, f, why);
	} else if (*why) {
		session__warn(s, "%s: family %s: %s", o->path, f->name, why);
		s->not_attached++;
	}
	about__probes(s, probes);
	if (attached)
		o->live = session__now(s);
	/* what was mapped before tracing began was not blind for a while: the trace begins with its probes */
	if (!s->started)
		o->first = o->live ? o->live : session__now(s);
	/* a family may only want to know which processes have the object */
	if (p.n || *why)
		write_object(s, o, f->id, attached, span ? s->span_method : s->entry_method, why);
	map__free(&p.taken);
	free(p.list);
}

bool object__attach(struct session *s, struct object *o)
{
	for (u32 i = 0; i < s->schema->n_families; i++)
		if (s->family_on[s->schema->families[i].id] && !(o->families & (1u << s->schema->families[i].id)))
			attach_family(s, o, &s->schema->families[i]);
	return o->families;
}
