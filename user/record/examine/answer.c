// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Checks the answers of a child of sonde-examiner, which its file may have compromised: each number is checked
 * against the range of what it refers to, texts are made printable, and no more records of each kind are accepted
 * than a file can have.
 */
#include "attach/library.h"
#include "record/discover/objects.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void examination__free(struct examination *x)
{
	for (u32 i = 0; i < x->n_names; i++)
		free(x->names[i]);
	free(x->names);
	free(x->sites);
	x->names = NULL;
	x->sites = NULL;
	x->n_names = x->n_sites = 0;
}

/* Returns whether the message consists of exactly this many records of this size. */
static bool has_items(size_t n, size_t size, u32 count)
{
	return n - ANSWER_HEAD == size * count;
}

/* Checks that a text ends inside its field, and makes it printable. */
static bool clean_text(char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((u8)text[i] < ' ' || (u8)text[i] == 0x7f)
			text[i] = '?';
	return true;
}

static int take_name(struct examination *x, const struct answer *a, size_t n)
{
	char *name;

	if (n < ANSWER_HEAD + 2 || n > ANSWER_HEAD + FILE_NAME_MAX || a->text[n - ANSWER_HEAD - 1] ||
	    x->n_names == FILE_NAMES_MAX)
		return -EPROTO;
	if (!array__room(x->names, x->n_names))
		return -ENOMEM;
	name = strdup(a->text);
	if (!name)
		return -ENOMEM;
	x->names[x->n_names++] = name;
	return 0;
}

static bool is_site(const struct examination *x, const struct session *s, const struct found_site *p, u64 file_size)
{
	const struct program *program;

	if (p->program >= s->embedded.probes.n_programs)
		return false;
	program = &s->embedded.probes.programs[p->program];
	if (!program->enabled || p->offset >= file_size || p->counter >= file_size)
		return false;
	switch (program->section.kind) {
	case SECTION_SITE:
		return p->name == SITE_NO_NAME || p->name < x->n_names;
	case SECTION_SPAN:
	case SECTION_ENTRY:
	case SECTION_PLACED:
		return p->name < x->n_names && !p->counter;
	default:
		return false;
	}
}

static int take_sites(struct examination *x, const struct session *s, const struct answer *a, size_t n, u64 file_size)
{
	u32 count = a->head.n;

	if (!count || count > SITES_BATCH || !has_items(n, sizeof(*a->sites), count) ||
	    x->n_sites + count > FILE_SITES_MAX)
		return -EPROTO;
	for (u32 i = 0; i < count; i++)
		if (!is_site(x, s, &a->sites[i], file_size))
			return -EPROTO;
	for (u32 i = 0; i < count; i++)
		if (!array__push(x->sites, x->n_sites, a->sites[i]))
			return -ENOMEM;
	return 0;
}

/* The sites of a family are those received since the last family. */
static int take_family(struct examination *x, struct session *s, const struct object *o, const struct answer *a,
		       size_t n)
{
	struct examined_family *last = x->n_families ? &x->families[x->n_families - 1] : NULL;
	struct examined_family f = { .family = a->family, .first = last ? last->first + last->n : 0 };

	if (!has_items(n, sizeof(a->family), 1) || f.family.id >= ARRAY_LEN(s->load.family_on) ||
	    !s->load.family_on[f.family.id] || o->families & FAMILY_BIT(f.family.id) || x->n_families == FAMILY_MAX ||
	    f.family.error > 0 || f.family.hint > 1 || !clean_text(f.family.why, sizeof(f.family.why)))
		return -EPROTO;
	for (u32 i = 0; i < x->n_families; i++)
		if (x->families[i].family.id == f.family.id)
			return -EPROTO;
	f.n = x->n_sites - f.first;
	for (u32 i = 0; i < f.n; i++)
		if (s->embedded.probes.programs[x->sites[f.first + i].program].family->id != f.family.id)
			return -EPROTO;
	x->families[x->n_families++] = f;
	return 0;
}

static int take_library(struct examination *x, struct session *s, struct object *o, const struct answer *a, size_t n)
{
	if (!has_items(n, sizeof(a->library), 1) || a->library.program >= s->embedded.probes.n_programs ||
	    x->n_libraries++ == FILE_LIBRARIES_MAX)
		return -EPROTO;
	object__note_unlike(s, o, &s->embedded.probes.programs[a->library.program], a->library.match == LIBRARY_OTHER);
	return 0;
}

static int take_facts(struct examination *x, const struct answer *a, size_t n)
{
	struct file_facts *f = &x->facts;
	u32 reported;

	if (!has_items(n, sizeof(*f), 1) || x->n_facts++ == FILE_FACTS_MAX)
		return -EPROTO;
	reported = f->python.reported;
	*f = a->facts;
	f->python.reported = reported;
	if (f->n_segments > FILE_SEGMENTS_MAX || f->python.error > 0 || !clean_text(f->build_id, sizeof(f->build_id)) ||
	    !clean_text(f->python.why, sizeof(f->python.why)) || f->build_id[strspn(f->build_id, "0123456789abcdef")])
		return -EPROTO;
	return 0;
}

static int take_note(struct examination *x, const struct answer *a, size_t n)
{
	size_t len = n - ANSWER_HEAD;

	if (x->n_notes++ || !len || len > sizeof(x->note) || a->text[len - 1])
		return -EPROTO;
	memcpy(x->note, a->text, len);
	return clean_text(x->note, sizeof(x->note)) ? 0 : -EPROTO;
}

static int take_symbol(struct examination *x, const struct answer *a, size_t n)
{
	if (!has_items(n, sizeof(a->symbol), 1) || x->n_answers++)
		return -EPROTO;
	x->symbol = a->symbol;
	return strnlen(x->symbol.name, sizeof(x->symbol.name)) < sizeof(x->symbol.name) ? 0 : -EPROTO;
}

/* Does the text end within its array? */
#define ENDS(text) (strnlen(text, sizeof(text)) < sizeof(text))

static bool are_lines(const struct dwarf_place *p)
{
	if (p->n_inlined > DWARF_INLINED || !ENDS(p->line.file))
		return false;
	for (u32 i = 0; i < p->n_inlined; i++)
		if (!ENDS(p->inlined[i].name) || !ENDS(p->inlined[i].line.file))
			return false;
	return true;
}

static int take_code(struct examination *x, const struct answer *a, size_t n)
{
	struct found_code *c = &x->code;

	if (!has_items(n, sizeof(*c), 1) || x->n_answers++)
		return -EPROTO;
	*c = a->code;
	return ENDS(c->name) && are_lines(&c->source) && c->unwind_error <= 0 ? 0 : -EPROTO;
}

/* Returns whether this kind of answer is valid for the request. */
static bool is_answer_to(u32 op, u32 kind)
{
	switch (kind) {
	case ANSWER_END:
		return true;
	case ANSWER_SYMBOL:
		return op == FILE_SYMBOL;
	case ANSWER_CODE:
		return op == FILE_CODE || op == FILE_PERF_MAP;
	default:
		return op == FILE_FIND;
	}
}

int examination__take(struct examination *x, struct session *s, struct object *o, const struct answer *a, size_t n,
		      u64 file_size)
{
	if (n < ANSWER_HEAD || !is_answer_to(x->op, a->head.kind))
		return -EPROTO;
	switch (a->head.kind) {
	case ANSWER_NAME:
		return take_name(x, a, n);
	case ANSWER_SITES:
		return take_sites(x, s, a, n, file_size);
	case ANSWER_LIBRARY:
		return o ? take_library(x, s, o, a, n) : -EPROTO;
	case ANSWER_FAMILY:
		return o ? take_family(x, s, o, a, n) : -EPROTO;
	case ANSWER_FACTS:
		return take_facts(x, a, n);
	case ANSWER_NOTE:
		return take_note(x, a, n);
	case ANSWER_SYMBOL:
		return take_symbol(x, a, n);
	case ANSWER_CODE:
		return take_code(x, a, n);
	case ANSWER_END:
		x->end = a->end;
		return has_items(n, sizeof(a->end), 1) && a->end.result <= 0 ? 1 : -EPROTO;
	}
	return -EPROTO;
}
