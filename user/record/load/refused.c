// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that this kernel refuses, or that can't be attached: what the recording lacks without each. Without a
 * program of the first kind a part of its family's events is missing, without one of the second kind the family
 * records nothing, and without one of the third kind the whole recording is impossible.
 */
#include "record/load/refused.h"

#include "record/parts.h"
#include "util/array.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A family that loses more programs than this gets one line for the rest. */
#define LINES_EACH 3

static const struct family_part core_parts[] = {
	FAMILY_PART("core_open_calls", "calls that are still open when the recording stops"),
	FAMILY_PART("core_clock", "the offset of the clocks in a time namespace"),
	FAMILY_PART("core_moved", "processes that are moved to a --cgroup later"),
	FAMILY_PART("core_exec_user", "processes that change their user by executing a program, for --scope user"),
	FAMILY_PART("core_users", "processes that change their user without that, for --scope user"),
	FAMILY_PART("core_at_call", "Python stacks at the start of calls"),
	FAMILY_PART("core_python_*", "Python stacks in processes that fork, exec or end meanwhile"),
	FAMILY_PART("core_file_*", "processes at other ends of pipes and connections"),
	FAMILY_WHOLE("core_*"),
	FAMILY_PARTS_END,
};

static bool is_uprobe(const struct program *p)
{
	return p->section.kind == SECTION_SPAN || p->section.kind == SECTION_ENTRY || p->section.kind == SECTION_PLACED;
}

/* Writes "calls of cudaMalloc, cudaFree and 9 more". */
static void name_functions(const struct program *p, char *buf, size_t len)
{
	const char *list = p->section.rest;
	u32 n = 0, shown = 0;
	size_t used = snprintf(buf, len, "calls of ");
	char name[128];

	while (section__next_function(&list, name, sizeof(name)))
		if (n++ < 4 && used < len) {
			used += snprintf(buf + used, len - used, "%s%s", shown ? ", " : "", name);
			shown++;
		}
	if (n > shown && used < len)
		snprintf(buf + used, len - used, " and %u more functions", n - shown);
}

const struct family_part *refused__part(const struct program *p)
{
	const struct family_host *h = p->family->id ? family_host__find(p->family->name) : NULL;
	const struct family_part *part = p->family->id ? (h ? h->parts : NULL) : core_parts;

	for (; part && part->programs; part++)
		if (!fnmatch(part->programs, p->name, 0))
			return part;
	return NULL;
}

static void describe_lack(const struct program *p, char *buf, size_t len)
{
	const struct family_part *part = refused__part(p);

	if (part)
		snprintf(buf, len, "%s", part->is_whole_family ? "all of the family" : part->lacks);
	else if (is_uprobe(p))
		name_functions(p, buf, len);
	else
		snprintf(buf, len, "what the kernel shows at %s", p->section.rest);
}

static int note_refusal(struct session *s, struct program *p, const char *why)
{
	const struct family_part *part = refused__part(p);
	char text[256];

	if (!array__room(s->refused.programs, s->refused.n))
		return -ENOMEM;
	describe_lack(p, text, sizeof(text));
	s->refused.programs[s->refused.n++] =
		(struct refusal){ p->family, p->name, strdup(why), strdup(text), part && part->is_whole_family, part };
	p->enabled = false;
	return 0;
}

/*
 * Disables all programs of the family whose parts have the same description. They belong together: with one that
 * records the start of events and without the one that records their end, events would be wrong.
 */
static void drop_part(struct session *s, const struct program *p, const struct family_part *part)
{
	if (!part || part->is_whole_family)
		return;
	PROGRAMS_EACH(other, &s->embedded.probes) {
		const struct family_part *its = other->family == p->family ? refused__part(other) : NULL;

		if (its && !its->is_whole_family && !strcmp(its->lacks, part->lacks))
			other->enabled = false;
	}
}

bool refused__is_optional(const struct program *p)
{
	const struct family_part *part = refused__part(p);

	return part && part->is_optional;
}

int refused__absent(struct session *s, struct program *p)
{
	char why[160];

	if (refused__is_optional(p)) {
		p->enabled = false;
		return 0;
	}
	snprintf(why, sizeof(why), "this kernel has no tracepoint %s", p->section.rest);
	drop_part(s, p, refused__part(p));
	return note_refusal(s, p, why);
}

/* Drops all programs of such a family: the remaining ones would record half of the events. */
static void drop_families(struct session *s)
{
	for (u32 i = 0; i < s->refused.n; i++) {
		const struct schema_family *f = s->refused.programs[i].family;

		if (!s->refused.programs[i].is_whole_family || !s->load.family_on[f->id])
			continue;
		s->not_attached++;
		s->load.family_on[f->id] = false;
		PROGRAMS_EACH(p, &s->embedded.probes)
			p->enabled &= p->family != f;
	}
}

/* Returns whether a program is left, or one was refused that disables the family anyway. */
static bool is_accounted_for(const struct session *s, const struct schema_family *f)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && p->family == f)
			return true;
	for (u32 i = 0; i < s->refused.n; i++)
		if (s->refused.programs[i].family == f && s->refused.programs[i].is_whole_family)
			return true;
	return false;
}

/* A family whose programs are all refused is disabled, too, whether or not they are listed as parts. */
static void note_empty_families(struct session *s)
{
	for (u32 i = 0; i < s->refused.n; i++)
		if (!is_accounted_for(s, s->refused.programs[i].family))
			s->refused.programs[i].is_whole_family = true;
}

/* Drops a program that is missing, and its part. An error: nothing can be recorded without it. */
static int take_out(struct session *s, struct program *p, const char *why, char *err, size_t len)
{
	const struct family_part *part = refused__part(p);

	if (note_refusal(s, p, why)) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	if (part && part->is_whole_family && !p->family->id) {
		snprintf(err, len,
			 "this kernel refused the program %s, without which nothing can be recorded: %s\n"
			 "its verifier or its configuration is at fault; `sonde doctor` shows what else it lacks",
			 p->name, why);
		return -ENOTSUP;
	}
	drop_part(s, p, part);
	return 0;
}

/*
 * Returns whether the loss of `a` explains better than that of `b` why a family is disabled. A family lists its most
 * important parts first.
 */
static bool comes_before(const struct refusal *a, const struct refusal *b)
{
	if (a->is_whole_family != b->is_whole_family)
		return a->is_whole_family;
	return a->part != b->part && a->part && (!b->part || a->part < b->part);
}

/*
 * Groups new refusals by family, the one that explains most first, so that record, doctor and readers of the trace name
 * the same.
 */
static void sort_refusals(struct session *s)
{
	u32 first = s->refused.n_reported;

	for (u32 i = first + 1; i < s->refused.n; i++) {
		struct refusal one = s->refused.programs[i];
		u32 at = i;

		while (at > first && (one.family->id < s->refused.programs[at - 1].family->id ||
				      (one.family == s->refused.programs[at - 1].family &&
				       comes_before(&one, &s->refused.programs[at - 1])))) {
			s->refused.programs[at] = s->refused.programs[at - 1];
			at--;
		}
		s->refused.programs[at] = one;
	}
}

int refused__apply(struct session *s, char *err, size_t len)
{
	int ret = 0;

	PROGRAMS_EACH(p, &s->embedded.probes) {
		if (p->load_error)
			ret = take_out(s, p, p->refusal ? p->refusal : strerror(-p->load_error), err, len);
		if (ret)
			return ret;
	}
	note_empty_families(s);
	drop_families(s);
	sort_refusals(s);
	return 0;
}

/* Detaches programs that were attached before another program of their part or family failed. */
static void detach_disabled(struct session *s)
{
	/* a detach of a program that was never attached would be an error */
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (s->attacher && !p->enabled && p->section.kind == SECTION_TRACEPOINT)
			attacher__detach(s->attacher, p);
}

/* Detaches what is dropped, and reports it, after the start of the recording. */
static void report_later(struct session *s)
{
	detach_disabled(s);
	refused__warn(s);
	if (s->writer)
		refused__write(s);
}

int refused__unattached(struct session *s, struct program *p, int error, char *err, size_t len)
{
	char why[160];
	int ret;

	snprintf(why, sizeof(why), "it can't be attached (%s): %s", p->full_section, strerror(-error));
	ret = take_out(s, p, why, err, len);
	if (ret)
		return ret;
	note_empty_families(s);
	drop_families(s);
	report_later(s);
	return 0;
}

bool refused__concerns(const struct session *s, const struct schema_family *f)
{
	for (u32 i = 0; i < s->refused.n; i++)
		if (s->refused.programs[i].family == f)
			return true;
	return false;
}

/* Returns whether an earlier refusal of the family has the same text. */
static bool is_repeated(const struct session *s, u32 index)
{
	const struct refusal *r = &s->refused.programs[index];

	for (u32 i = 0; i < index; i++)
		if (s->refused.programs[i].family == r->family && !strcmp(s->refused.programs[i].lacks, r->lacks))
			return true;
	return false;
}

/* Returns the number of the family's missing parts among the first n refusals. */
static u32 parts_missing(const struct session *s, const struct schema_family *f, u32 n)
{
	u32 parts = 0;

	for (u32 i = 0; i < n; i++)
		parts += s->refused.programs[i].family == f && !is_repeated(s, i);
	return parts;
}

/* The first few parts of a family get a line each; for a disabled family, only the program that disables it. */
static bool is_reported(const struct session *s, u32 index)
{
	const struct refusal *r = &s->refused.programs[index];

	for (u32 i = 0; i < s->refused.n; i++)
		if (s->refused.programs[i].family == r->family && s->refused.programs[i].is_whole_family &&
		    (i < index || comes_before(&s->refused.programs[i], r)))
			return false;
	return r->is_whole_family || (!is_repeated(s, index) && parts_missing(s, r->family, index) < LINES_EACH);
}

void refused__warn(struct session *s)
{
	for (u32 i = s->refused.n_reported; i < s->refused.n; i++) {
		const struct refusal *r = &s->refused.programs[i];
		u32 all = parts_missing(s, r->family, s->refused.n);
		char more[64] = "";

		if (!is_reported(s, i))
			continue;
		if (!r->is_whole_family && all > LINES_EACH && parts_missing(s, r->family, i + 1) == LINES_EACH)
			snprintf(more, sizeof(more), " (and %u parts more, see `sonde report losses`)",
				 all - LINES_EACH);
		session__warn(s, "family %s: the program %s is missing: %s; reports lack %s%s", r->family->name,
			      r->program, r->why, r->is_whole_family ? "all of the family" : r->lacks, more);
	}
	s->refused.n_reported = s->refused.n;
}

void refused__write(struct session *s)
{
	for (; s->refused.n_written < s->refused.n; s->refused.n_written++) {
		const struct refusal *from = &s->refused.programs[s->refused.n_written];
		struct meta_refused r = {
			.event = session__event(s, ID_meta_refused),
			.program = session__intern(s, from->program),
			.why = session__intern(s, from->why),
			.lacks = session__intern(s, from->lacks),
			.family = from->family->id,
			.all = from->is_whole_family,
		};

		session__emit(s, &r, sizeof(r));
	}
}

void refused__free(struct refused *r)
{
	for (u32 i = 0; i < r->n; i++) {
		free(r->programs[i].why);
		free(r->programs[i].lacks);
	}
	free(r->programs);
	r->programs = NULL;
	r->n = r->n_reported = r->n_written = 0;
}
