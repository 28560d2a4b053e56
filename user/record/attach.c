// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The probes of one object: where each family's programs go in it, and their links. */
#include "attach/place.h"
#include "record/objects.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENOTSUPP 524 /* include/linux/errno.h: the kernel's own, without a text in libc */

struct place {
	const struct program *program;
	u64 offset;
	u64 cookie;
};

struct places {
	struct session *s;
	struct object *o;
	const struct program *program; /* whose functions are being looked for */
	const char *pattern;
	struct place *list;
	u32 n, max;
	int error;
};

int site_list__add(struct site_list *list, u64 offset, const char *program)
{
	struct site *bigger = realloc(list->sites, (list->n + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	list->sites = bigger;
	list->sites[list->n++] = (struct site){ .offset = offset, .program = program };
	return 0;
}

static void add_place(struct places *p, const struct program *program, u64 offset, const char *name, u64 group)
{
	u16 number = probes__number(&p->s->embedded.probes, program, name);
	struct place *bigger;

	/* two names of one function (an alias) are one call */
	for (u32 i = 0; i < p->n; i++)
		if (p->list[i].offset == offset && p->list[i].program->section.kind == program->section.kind)
			return;
	if (!number) {
		p->error = -E2BIG;
		return;
	}
	if (p->n == p->max) {
		bigger = realloc(p->list, (p->max + 64) * sizeof(*bigger));
		if (!bigger) {
			p->error = -ENOMEM;
			return;
		}
		p->list = bigger;
		p->max += 64;
	}
	p->list[p->n++] = (struct place){
		.program = program,
		.offset = offset,
		.cookie = number | group << COOKIE_GROUP_SHIFT,
	};
}

static void add_function(struct places *p, const struct elf_symbol *sym)
{
	u64 len = 16;
	const u8 *code = elf__bytes(p->o->elf, sym->addr, &len);

	if (!sym->function || !code)
		return;
	/* a glob may match C++ names, whose returns are not safe to probe */
	if (p->program->section.kind == SECTION_SPAN && !strncmp(sym->name, "_Z", 2))
		return;
	add_place(p, p->program, sym->offset + place__entry(code, len), sym->name,
		  section__group(&p->program->section, sym->name));
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct places *p = arg;

	if (sym->dynamic && sym->default_version && !fnmatch(p->pattern, sym->name, 0))
		add_function(p, sym);
	return 0;
}

/* The functions that a program's section names, as far as this object has them. */
static void find_functions(struct places *p, const struct program *program)
{
	const char *list = program->section.rest;
	struct elf_symbol sym;
	char name[256];

	p->program = program;
	p->pattern = name;
	while (section__next_function(&list, name, sizeof(name))) {
		if (strpbrk(name, "*?["))
			elf__each_symbol(p->o->elf, on_symbol, p);
		else if (!elf__find_symbol(p->o->elf, name, &sym))
			add_function(p, &sym);
	}
}

/* The places that the family's host code finds. true: it is a runtime of the family. */
static bool find_sites(struct places *p, const struct family_host *h, char *why, size_t len)
{
	struct site_list sites = {};

	if (!h || !h->is_runtime || !h->is_runtime(p->o->elf, p->o->path))
		return false;
	if (h->sites) {
		int err = h->sites(p->s, p->o->elf, p->o->path, &sites, why, len);

		if (err && !*why)
			snprintf(why, len, "%s", strerror(-err));
	}
	for (u32 i = 0; i < sites.n; i++) {
		const struct program *program = probes__program(&p->s->embedded.probes, sites.sites[i].program);

		if (program && program->enabled)
			add_place(p, program, sites.sites[i].offset, program->section.rest, 0);
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
	struct link_sites sites = { .fd = p->o->fd, .offsets = offsets, .cookies = cookies };
	int err = offsets && cookies ? 0 : -ENOMEM;

	for (u32 i = 0; i < p->n && !err; i++) {
		if (p->list[i].program != program)
			continue;
		offsets[sites.n] = p->list[i].offset;
		cookies[sites.n++] = p->list[i].cookie;
	}
	if (!err)
		err = session__link(p->s, program, span ? p->s->span_method : p->s->entry_method, &sites, attached);
	if (!err && sites.n && span && p->s->span_mode == SPAN_PAIR)
		err = attach_returns(p->s, program, &sites, cookies);
	free(offsets);
	free(cookies);
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
		.path = session__intern(s, o->path),
		.build_id = session__intern(s, elf__build_id(o->elf)),
		.why = session__intern(s, why),
		.sites = sites,
		.object = o->id,
		.family = family,
		.method = sites ? method : ATTACH_NONE,
	};

	session__emit(s, &r, sizeof(r));
	if (s->started && sites)
		losses__add(s, family, LOSS_BLIND, 1, o->first, o->live, o->id);
}

static void attach_family(struct session *s, struct object *o, const struct schema_family *f)
{
	struct places p = { .s = s, .o = o };
	u32 attached = 0, probes = s->embedded.probes.n;
	bool runtime = false, span = false;
	char why[256] = "";
	int err = 0;

	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *program = &s->embedded.probes.programs[i];

		if (program->enabled && program->family == f && section__matches_library(&program->section, o->path)) {
			find_functions(&p, program);
			runtime = true;
		}
	}
	runtime |= find_sites(&p, family_host__find(f->name), why, sizeof(why));
	if (!runtime)
		return;
	o->families |= 1u << f->id;
	for (u32 i = 0; i < s->embedded.probes.n_programs && !err; i++) {
		const struct program *program = &s->embedded.probes.programs[i];

		if (program->enabled && program->family == f) {
			err = attach_program(&p, program, &attached);
			span |= program->section.kind == SECTION_SPAN;
		}
	}
	if (!err)
		err = p.error;
	if (err) {
		snprintf(why, sizeof(why), "the kernel refused probes: %s",
			 err == -ENOTSUPP ? "an instruction that it can't probe" :
			 err == -EPIPE	  ? "the process that attaches them is gone" :
					    strerror(-err));
		session__warn(s, "%s: family %s: %s", o->path, f->name, why);
		s->not_attached++;
	} else if (*why) {
		session__warn(s, "%s: family %s: %s", o->path, f->name, why);
		s->not_attached++;
	}
	about__probes(s, probes);
	if (attached)
		o->live = session__now(s);
	/* what was mapped before tracing began was not blind for a while: the trace begins with its probes */
	if (!s->started)
		o->first = o->live;
	/* a family may only want to know which processes have the object */
	if (p.n || *why)
		write_object(s, o, f->id, attached, span ? s->span_method : s->entry_method, why);
	free(p.list);
}

void object__refuse(struct session *s, const struct object *o, const char *why)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *program = &s->embedded.probes.programs[i];

		if (!program->enabled || !section__matches_library(&program->section, o->path))
			continue;
		session__warn(s, "%s: family %s: not traced: %s", o->path, program->family->name, why);
		s->not_attached++;
		return;
	}
}

bool object__attach(struct session *s, struct object *o)
{
	for (u32 i = 0; i < s->schema->n_families; i++)
		if (s->family_on[s->schema->families[i].id] && !(o->families & (1u << s->schema->families[i].id)))
			attach_family(s, o, &s->schema->families[i]);
	return o->families;
}
