// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Garbage collections: their share of the time, their generations, the code that triggered them, what they freed. Of
 * processes whose collections were not recorded the share comes from samples in the collector.
 */
#include <errno.h>
#include <stdio.h>

#include "findings/classify.h"
#include "findings/span_sums.h"
#include "output/text.h"

#define CALLED_BY ";" CLAUSE "the allocating function was called by "

static int complete(const struct finding_input *in, const struct span_sum *s, struct finding *f)
{
	char figures[160];
	struct finding_code caller = { 0 };

	snprintf(f->report, sizeof(f->report), "gc");
	snprintf(figures, sizeof(figures),
		 "%llu collection%s of %s%s (%llu of the oldest generation) freed %s object%s", s->n, text__s(s->n),
		 TEXT_NS(s->ns / (s->n ? s->n : 1)), s->n == 1 ? "" : " each", s->full_collections,
		 TEXT_COUNT(s->freed), text__s(s->freed));
	finding_code__fill_caller(&caller, in->stacks, s->stack);
	finding_code__write(&caller, CALLED_BY, figures, f->detail, sizeof(f->detail));
	return 0;
}

/* Time in the collector by samples is summed by process, function and line. */
enum level { LEVEL_PROCESS, LEVEL_FUNCTION, LEVEL_LINE, LEVELS };

struct place_key {
	u32 pid, level;
	u32 code; /* the function, from LEVEL_FUNCTION on */
	u32 line; /* LEVEL_LINE */
};

struct place {
	u64 ns, samples, sampled_ns;
	u32 stack; /* from the innermost Python frame outwards */
};

struct sampled {
	const struct finding_input *in;
	const struct map *recorded; /* processes whose collections were recorded: u32 pid -> u8 */
	struct map places; /* struct place_key -> struct place */
};

/* is_sample: of the clock; else the thread was off the CPU meanwhile. */
static int add_time(struct sampled *c, u32 pid, u32 stack, u64 ns, u64 samples)
{
	const struct stacks *stacks = c->in->stacks;
	struct stack_parts parts = stack_parts__of(stacks, stack);
	const struct stack_frame *f;

	if (map__find(c->recorded, &pid) || !parts.collects)
		return 0;
	f = stacks__frame(stacks, parts.user ? parts.user : parts.python);
	for (u32 level = 0; level < LEVELS; level++) {
		struct place_key key = { .pid = pid, .level = level };
		struct place *p;

		key.code = f && level >= LEVEL_FUNCTION ? f->code : 0;
		key.line = f && level >= LEVEL_LINE ? f->line : 0;
		p = map__get(&c->places, &key);
		if (!p)
			return -ENOMEM;
		p->ns += ns;
		p->samples += samples;
		p->sampled_ns += samples ? ns : 0;
		p->stack = parts.python;
	}
	return 0;
}

static int on_off_cpu(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), stack);
	struct sampled *c = arg;
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = add_time(c, (u32)view__s64(&v, f.pid), (u32)view__s64(&v, stack),
			       query__inside(c->in->q, (u64)view__s64(&v, f.start), (u64)view__s64(&v, f.time)), 0);
	return err;
}

/* Samples, and where some are in the collector, the intervals in which such a thread lacked a CPU, too. */
static int sum_samples(struct sampled *c)
{
	const struct profile *p = c->in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);
		const struct profile_sample *s = map__value(&p->samples, i);

		err = add_time(c, key->thread.pid, key->stack, s->ns, s->samples);
	}
	if (err || !c->places.n)
		return err;
	return query__read_kind(c->in->q, "sample_off", on_off_cpu, c);
}

/* Where the process spent most time: the number of a place of this level, and from LEVEL_LINE on, in this function. */
static u32 largest(const struct sampled *c, u32 pid, u32 level, u32 code)
{
	u32 found = 0;
	u64 ns = 0;

	for (u32 i = 0; i < c->places.n; i++) {
		const struct place_key *k = map__key(&c->places, i);
		const struct place *p = map__value(&c->places, i);

		if (k->pid != pid || k->level != level || (level == LEVEL_LINE && k->code != code) || p->ns < ns)
			continue;
		found = i;
		ns = p->ns;
	}
	return found;
}

/* Fewer samples are not enough to name a cause. */
#define SAMPLES_MIN 5

static void add_sampled(const struct sampled *c, u32 pid, const struct place *p, struct findings *out)
{
	u64 wall = span_sums__wall(c->in, pid), duration = query__duration(c->in->q);
	struct finding_code caller = { 0 };
	const struct place_key *function;
	const struct place *line;
	char figures[96];
	struct finding *f;

	if (p->samples < SAMPLES_MIN || p->ns < wall / SPAN_SHARE_MIN || p->ns < duration / SPAN_SHARE_MIN)
		return;
	f = findings__add(out, FINDING_GC);
	if (!f)
		return;
	f->confidence = FINDING_ATTRIBUTED;
	f->pid = pid;
	f->processes = f->threads = 1;
	f->lost_ns = p->ns;
	f->wall_ns = wall > p->ns ? wall : p->ns;
	f->weight = (double)p->ns * finding_kind__weight(FINDING_GC);
	function = map__key(&c->places, largest(c, pid, LEVEL_FUNCTION, 0));
	line = map__value(&c->places, largest(c, pid, LEVEL_LINE, function->code));
	finding_code__fill(&f->code, c->in->stacks, line->stack);
	finding_code__fill_caller(&caller, c->in->stacks, line->stack);
	snprintf(figures, sizeof(figures), "estimate from %s samples", TEXT_COUNT(p->samples));
	finding_code__write(&caller, CALLED_BY, figures, f->detail, sizeof(f->detail));
	snprintf(f->report, sizeof(f->report), "stacks");
	snprintf(f->advice, sizeof(f->advice), "`sonde record -t +python` counts the collections and what they free.");
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct map recorded;
	struct sampled c = { .in = in, .recorded = &recorded };
	int err;

	map__init(&recorded, sizeof(u32), sizeof(u8));
	map__init(&c.places, sizeof(struct place_key), sizeof(struct place));
	err = span_sums__find(in, "python_gc", FINDING_GC, complete, &recorded, out);
	if (!err)
		err = sum_samples(&c);
	for (u32 i = 0; !err && i < c.places.n; i++) {
		const struct place_key *key = map__key(&c.places, i);

		if (key->level == LEVEL_PROCESS)
			add_sampled(&c, key->pid, map__value(&c.places, i), out);
	}
	MAPS_FREE(&c.places, &recorded);
	return err;
}

FINDINGS(gc) = { .name = "gc", .find = find };
