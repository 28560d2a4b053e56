// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaches the probes of one object, at the sites that were found in its file (record/examine/examine.h). */
#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/metadata.h"
#include "record/parts.h"
#include "site/verify_site.h"
#include "util/account.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNKNOWN_OWNER 0xffffffffu /* the user id that no file has */

#define ENOTSUPP 524 /* include/linux/errno.h: an error of the kernel that libc has no text for */

struct numbered_site {
	const struct program *program;
	u64 offset;
	u64 cookie;
	u64 counter; /* see struct site */
};

/* The sites of one family in one file, to be attached */
struct family_sites {
	struct session *s;
	struct object *o;
	struct numbered_site *list;
	u32 n;
	u32 probes; /* number of probes before this file */
	u32 owner; /* user id of the file's owner */
	int error;
};

/*
 * Returns the bits of a site's cookie above the number of its probe (core/maps.h): for a SITE program those that its
 * family set; for an end of a placed call which end it is, and where the stack was at the entry; else the group of the
 * function.
 */
static u64 bits_of(const struct program *program, const struct found_site *found, u32 group)
{
	const u64 ends = COOKIE_EXIT | COOKIE_UNWIND,
		  end = ends | COOKIE_BY_FRAME_POINTER | 0xffffULL << COOKIE_ABOVE_SHIFT;

	if (program->section.kind == SECTION_SITE)
		return found->bits & ~0xffffULL;
	if (program->section.kind == SECTION_PLACED && found->bits & ends)
		return found->bits & end;
	return (u64)group << COOKIE_GROUP_SHIFT;
}

/* A program's probe on a function; its number is looked up once for all sites. */
struct numbered {
	u32 group;
	u16 number; /* 0: not known yet */
	bool refused; /* number_function() failed for it, so its sites are left out */
};

/* Returns 0, -E2BIG, -ENOMEM or -EPROTO: the program does not name the function. */
static int number_function(struct family_sites *p, const struct program *program, const char *name,
			   struct numbered *out)
{
	struct probes *probes = &p->s->embedded.probes;
	unsigned int group = 0;

	if (program->section.kind != SECTION_SITE && !section__has(&program->section, name, &group))
		return -EPROTO;
	out->group = group;
	out->number = probes->n - p->probes < FILE_PROBES_MAX ? probes__add(probes, program, name, p->owner) :
								probes__number(probes, program, name);
	return out->number ? 0 : -E2BIG;
}

static int number_site(struct family_sites *p, const struct examination *x, const struct found_site *found,
		       struct map *numbers)
{
	const struct program *program = &p->s->embedded.probes.programs[found->program];
	const char *name = found->name == SITE_NO_NAME ? program->section.rest : x->names[found->name];
	const struct {
		u32 program, name;
	} key = { found->program, found->name };
	struct numbered *n = numbers->n < FILE_NAMES_MAX ? map__get(numbers, &key) : map__find(numbers, &key);
	int err;

	if (!n || n->refused)
		return -E2BIG;
	if (!n->number) {
		err = number_function(p, program, name, n);
		n->refused = err;
		if (err)
			return err;
	}
	p->list[p->n++] = (struct numbered_site){ .program = program,
						  .offset = found->offset,
						  .cookie = n->number | bits_of(program, found, n->group),
						  .counter = found->counter };
	return 0;
}

/* Collects the sites that were found, with the numbers of their probes. */
static void number_sites(struct family_sites *p, const struct examination *x, const struct examined_family *f)
{
	struct map numbers;
	int err = 0;

	p->error = f->family.error;
	p->list = calloc(f->n + 1, sizeof(*p->list));
	if (!p->list) {
		p->error = -ENOMEM;
		return;
	}
	map__init(&numbers, 2 * sizeof(u32), sizeof(struct numbered));
	for (u32 i = 0; i < f->n && err != -EPROTO; i++) {
		err = number_site(p, x, &x->sites[f->first + i], &numbers);
		if (err)
			p->error = err;
	}
	map__free(&numbers);
	/* the process that examined the file is compromised: nothing of its answer is used */
	if (err == -EPROTO)
		p->n = 0;
}

/* Where the kernel has no uprobe sessions: probes returns only in the processes of -p, with links for each process. */
static int attach_returns(struct session *s, const struct program *program, struct link_sites *sites, u64 *cookies)
{
	int err = 0;

	for (u32 i = 0; i < sites->n; i++)
		cookies[i] |= COOKIE_RETURN;
	sites->returns = true;
	for (u32 i = 0; i < s->args->n_pids && !err; i++) {
		sites->pid = s->args->pids[i];
		err = site_links__add(s, program, s->load.method.span, sites, NULL);
		if (!err)
			process__set(s, sites->pid, PROCESS_RETURNS);
		else if (err == -ESRCH)
			err = 0;
	}
	return err;
}

/* Attaches the sites of one program, in portions (link.c). */
static int attach_program(struct family_sites *p, const struct program *program, u32 *attached)
{
	bool span = program->section.kind == SECTION_SPAN;
	enum attach_method method = span ? p->s->load.method.span : p->s->load.method.entry;
	u64 *offsets = calloc(p->n, sizeof(u64)), *cookies = calloc(p->n, sizeof(u64));
	u64 *counters = calloc(p->n, sizeof(u64));
	struct link_sites sites = {
		.fd = p->o->fd,
		.offsets = offsets,
		.cookies = cookies,
		.object = site_links__object(program, p->o->id),
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
	if (!err && site_links__are_detached(p->s, program))
		*attached += sites.n;
	else if (!err)
		err = site_links__add(p->s, program, method, &sites, attached);
	err = err ?: site_links__store(&p->s->site_links, program, method, &sites);
	if (!err && sites.n && span && p->s->load.method.spans == SPAN_PAIR)
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
		.dev = o->key.dev,
		.ino = o->key.ino,
		.path = session__intern(s, session__path(s, o->path)),
		.build_id = session__intern(s, o->facts ? o->facts->build_id : ""),
		.why = session__intern(s, why),
		.sites = sites,
		.object = o->id,
		.family = family,
		.method = sites ? method : ATTACH_NONE,
		.ahead = o->is_preattached,
	};

	session__emit(s, &r, sizeof(r));
	if (s->time.started && sites && !o->is_preattached && process__was_selected(s, o->pid))
		losses__add_of(s, o->pid, family, LOSS_ATTACH_GAP, 1, o->first, o->live, o->id);
}

/*
 * Notes a stripped file into which a probed library is linked (family_host.hides_library). A process may have a dozen
 * of them, libraries of NVIDIA. So there is only one warning for all, at the end of the recording. It is left out if
 * the family that records what they do (family_host.covered_by) has probes. The trace names each file.
 */
static void note_hidden(struct session *s, const struct object *o, const struct schema_family *f, const char *why)
{
	struct hidden_note note = { .family = f, .account = o->account };

	if (!warnings__is_first(&s->warnings, o->account, FIRST_HIDDEN))
		return;
	if (asprintf(&note.text, "%s: family %s: %s (`sonde info` names all such files)", o->path, f->name, why) >= 0 &&
	    !array__push(s->site_links.hidden, s->site_links.n_hidden, note))
		free(note.text);
}

void site_links__free(struct site_links *l)
{
	site_links__forget(l, 0);
	free(l->stored);
	for (u32 i = 0; i < l->n_hidden; i++)
		free(l->hidden[i].text);
	free(l->hidden);
}

void site_links__warn_hidden(struct session *s)
{
	for (u32 i = 0; i < s->site_links.n_hidden; i++) {
		const struct hidden_note *n = &s->site_links.hidden[i];
		const struct family_host *h = family_host__find(n->family->name);
		const struct schema_family *other =
			h && h->covered_by ? schema__family(s->embedded.schema, h->covered_by) : NULL;

		if (h && !(other && s->site_links.probed & FAMILY_BIT(other->id)))
			session__warn_of(s, n->account, "%s", n->text);
	}
}

/*
 * Notes in `why` that the attacher refused sites, because the tables of the file itself do not confirm them: the sites
 * are from a debug file of another build, or the code there can't be disassembled.
 */
static void note_refused(const struct session *s, const struct family_sites *p, char *why, size_t len)
{
	if (s->site_links.refused.n && !*why)
		snprintf(why, len, "%u of %u sites are not probed: offset %#llx: %s", s->site_links.refused.n, p->n,
			 s->site_links.refused.offset, site_verdict__text(s->site_links.refused.verdict));
}

/* Writes why there are no probes, and how to get them. */
static void explain_refusal(const struct session *s, const struct object *o, int err, char *why, size_t len)
{
	struct stat st;

	if (err == -E2BIG) {
		snprintf(
			why, len,
			"some functions are not probed: sonde distinguishes at most %d probes by name, and an owner of files gets only a part of them",
			MAX_PROBES);
		return;
	}

	if (err == -ESTALE)
		snprintf(
			why, len,
			"not probed: a process still maps the file that was here before overlayfs copied it to its upper "
			"layer, and that can't be opened any more; a process that starts now is probed");
	else if (err == -EACCES && s->args->trusted_files && !fstat(o->fd, &st))
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
			 err == -EPROTO	  ? "the process that parsed the file gave an invalid answer" :
			 err == -EPIPE	  ? "the process that attaches them is gone" :
					    strerror(-err));
}

/* Attaches the family's programs. Returns 0 or negative errno. */
static int attach_programs(struct family_sites *p, const struct schema_family *f, u32 *attached, bool *span)
{
	const struct probes *probes = &p->s->embedded.probes;
	int err = 0;

	p->s->site_links.refused.n = 0;
	for (u32 i = 0; i < probes->n_programs && !err; i++) {
		const struct program *program = &probes->programs[i];

		if (program->enabled && program->family == f) {
			err = attach_program(p, program, attached);
			*span |= program->section.kind == SECTION_SPAN;
		}
	}
	return err ? err : p->error;
}

/* before: how many probes had numbers before this file. */
static void attach_family(struct session *s, struct object *o, const struct examination *x,
			  const struct examined_family *e, u32 before)
{
	const struct schema_family *f = schema__family_by_id(s->embedded.schema, e->family.id);
	struct family_sites p = { .s = s, .o = o, .probes = before };
	u32 attached = 0, probes = s->embedded.probes.n;
	char why[sizeof(e->family.why)];
	bool span = false, lacking;
	struct stat st;
	int err;

	if (!o->id) {
		object__leave_out(s, o, "sonde already has probes in as many files as its limit allows");
		return;
	}
	strcpy(why, e->family.why);
	p.owner = fstat(o->fd, &st) ? UNKNOWN_OWNER : account__owner(st.st_uid);
	number_sites(&p, x, e);
	o->families |= FAMILY_BIT(f->id);
	err = o->is_copied_up && p.n ? -ESTALE : attach_programs(&p, f, &attached, &span);
	note_refused(s, &p, why, sizeof(why));
	if (err)
		explain_refusal(s, o, err, why, sizeof(why));
	lacking = err || (*why && !e->family.hidden && !e->family.has_nothing);
	if (lacking || e->family.has_nothing)
		object__warn(s, o, lacking, "%s: family %s: %s", o->path, f->name, why);
	else if (*why)
		note_hidden(s, o, f, why);
	metadata__probes(s, probes);
	if (attached) {
		o->live = session__now(s);
		s->site_links.probed |= FAMILY_BIT(f->id);
	}
	/*
	 * An object that was mapped before tracing began has no attach gap, because the traced time begins only when
	 * its probes are attached. Nor has one that no process maps yet.
	 */
	if (!s->time.started || o->is_preattached)
		o->first = o->live ? o->live : session__now(s);
	/* without sites and a reason there is nothing to state: the family only needs to know who maps the object */
	if (p.n || *why)
		write_object(s, o, f->id, attached, span ? s->load.method.span : s->load.method.entry, why);
	if (lacking && process__was_selected(s, o->pid))
		losses__add_of(s, o->pid, f->id, LOSS_UNPROBED, 1, o->first, session__now(s), o->id);
	free(p.list);
}

bool object__attach(struct session *s, struct object *o, const struct examination *x)
{
	u32 before = s->embedded.probes.n;

	if (s->args->attaching && !s->time.started && x->n_families)
		s->args->attaching(o->path);
	o->is_copied_up = x->n_families && object__is_copied_up(s, o);
	for (u32 i = 0; i < x->n_families; i++)
		attach_family(s, o, x, &x->families[i], before);
	return o->families;
}
