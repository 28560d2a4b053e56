// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/slow_rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings/classify.h"
#include "util/array.h"
#include "util/chance.h"
#include "util/path.h"
#include "util/search.h"

/* A rank that makes the others wait for a smaller part of their time, %, explains nothing. */
#define LOST_PERCENT 10
/* Each of them waits longer than the slow rank by this part of its time, %: of two slow ranks, none is named. */
#define EACH_PERCENT 5
/*
 * What it does itself longer than the others is at least this part of the time for which they wait for it, or of all
 * that it does itself: on a busy machine it mostly waits for a CPU meanwhile.
 */
#define OWN_PART 2
/* The innermost function that has this part of it, %, is named. */
#define CODE_PERCENT 80

/*
 * A function that the others are in for less than 1 / ALONE_PART of the time of the slow rank is one that it alone
 * calls. That none of so many samples or waits is by chance another rank's has a probability of one in a million.
 */
#define ALONE_PART  20
#define ALONE_TIMES 20

/* How long the thread of the slow rank, or those of the others, did something in a function and all that it called. */
struct spent_key {
	u64 function; /* hash of its name and file, as each process has its own code; 0: in any */
	u32 kind; /* enum finding_kind */
	u32 is_slow;
	u32 line; /* of the function; 0: in any */
	u32 unused;
};

struct spent {
	u64 ns, times;
	u64 longest; /* ns, on one stack */
	u32 stack; /* that one */
	u32 frame; /* the function's frame in it */
	u32 depth; /* number of frames further out */
	u32 serial; /* of the stack that was added last: a function may be on it twice */
};

struct spending {
	const struct finding_input *in;
	const struct job_rank *ranks, *slow;
	u32 n; /* ranks */
	u32 serial;
	struct map sums; /* struct spent_key -> struct spent */
	const u32 *next_sample; /* of struct job_ranks */
};

static int add_function(struct spending *s, struct spent_key key, u32 stack, u32 frame, u32 depth, u64 ns, u64 times)
{
	struct spent *sum = map__get(&s->sums, &key);

	if (!sum)
		return -ENOMEM;
	if (sum->serial == s->serial)
		return 0;
	sum->serial = s->serial;
	sum->ns += ns;
	sum->times += times;
	if (ns < sum->longest)
		return 0;
	sum->longest = ns;
	sum->stack = stack;
	sum->frame = frame;
	sum->depth = depth;
	return 0;
}

/* Is it a function with a name? A comprehension or generator expression is a part of the function that has it. */
static bool is_named(const struct stack_frame *f)
{
	return stack_frame__is_own(f) && !path__ends_with(f->name, "comp>") && !path__ends_with(f->name, "<genexpr>");
}

/* Adds the time to all functions of the program that are on the stack. */
static int add_time(struct spending *s, const struct job_rank *rank, enum finding_kind kind, u32 stack, u64 ns,
		    u64 times)
{
	struct spent_key key = { .kind = kind, .is_slow = rank == s->slow };
	u32 depth = stacks__depth(s->in->stacks, stack);
	const struct stack_frame *f;
	int err;

	s->serial++;
	err = add_function(s, key, stack, stack, 0, ns, times);
	for (u32 at = stack; !err && (f = stacks__frame(s->in->stacks, at)) != NULL; at = f->caller, depth--) {
		if (!is_named(f))
			continue;
		key.function = stack_frame__hash(f);
		for (key.line = 0; !err; key.line = f->line) {
			err = add_function(s, key, stack, at, depth, ns, times);
			if (key.line == f->line)
				break;
		}
	}
	return err;
}

/* Returns whether a rank does something itself meanwhile: it waits neither in a collective operation nor for a CPU. */
static bool is_own(const struct spending *s, const struct profile_key *key)
{
	return key->state == ACTIVITY_BLOCKED && !rank_time__has(s->in->ranks, key->stack);
}

static int sum_waits(struct spending *s)
{
	int err = 0;

	for (u32 i = 0; !err && i < s->n; i++) {
		const struct profile_thread *t = map__find(&s->in->profile->threads, &s->ranks[i].thread);

		for (u32 at = t ? t->cells : 0; !err && at; at = profile__cell(s->in->profile, at - 1)->next) {
			const struct profile_key *key = profile__key(s->in->profile, at - 1);
			const struct profile_cell *cell = profile__cell(s->in->profile, at - 1);

			if (is_own(s, key))
				err = add_time(s, &s->ranks[i], cell->kind, key->stack, cell->ns, cell->times);
		}
	}
	return err;
}

/* Divides the time of the rank's thread on CPUs in proportion to its samples. */
static int sum_samples(struct spending *s, const struct job_rank *rank)
{
	const struct profile *p = s->in->profile;
	const struct profile_thread *t = map__find(&p->threads, &rank->thread);
	u64 all = 0;
	int err = 0;

	for (u32 at = rank->samples; at; at = s->next_sample[at - 1])
		all += ((const struct profile_sample *)map__value(&p->samples, at - 1))->ns;
	for (u32 at = rank->samples; !err && all && at; at = s->next_sample[at - 1]) {
		const struct profile_sample_key *key = map__key(&p->samples, at - 1);
		const struct profile_sample *sample = map__value(&p->samples, at - 1);

		err = add_time(s, rank, FINDING_COMPUTE, key->stack,
			       (u64)((double)t->run * (double)sample->ns / (double)all), sample->samples);
	}
	return err;
}

/* Returns by how much longer than the others on average the slow rank did this, ns. */
static double excess_of(const struct spending *s, const struct spent_key *key, double *others)
{
	struct spent_key other = { .function = key->function, .kind = key->kind };
	const struct spent *own = map__find(&s->sums, key), *theirs = map__find(&s->sums, &other);

	*others = theirs ? (double)theirs->ns / (s->n - 1) : 0;
	return (own ? (double)own->ns : 0) - *others;
}

/*
 * Sets r->kind to what the slow rank did longer than the others by most. Returns by how much; 0: what it did itself
 * does not explain that they waited.
 */
static double find_kind(const struct spending *s, struct slow_rank *r)
{
	double most = 0, all = 0, all_others = 0, others;

	for (enum finding_kind kind = FINDING_NONE + 1; kind < FINDING_KINDS; kind++) {
		struct spent_key key = { .kind = kind, .is_slow = 1 };
		double excess = excess_of(s, &key, &others);

		all += excess;
		all_others += others;
		if (excess <= most)
			continue;
		most = excess;
		r->kind = kind;
	}
	return OWN_PART * all * r->others >= (double)r->lost_ns || OWN_PART * all >= all + all_others ? most : 0;
}

/* Returns the line of the function with most of its time. */
static const struct spent *longest_line(const struct spending *s, u32 kind, u64 function, const struct spent *sum)
{
	const struct spent *best = sum;

	MAP_EACH_ENTRY(const struct spent *line, const struct spent_key *key, &s->sums)
		if (key->is_slow && key->kind == kind && key->line && key->function == function &&
		    (best == sum || line->ns > best->ns))
			best = line;
	return best;
}

/* Sets r->code to the innermost function with most of it. Returns whether the slow rank alone is in that function. */
static bool find_code(const struct spending *s, struct slow_rank *r, double excess)
{
	struct spent_key whole = { .kind = r->kind, .is_slow = 1 };
	const struct spent *best = map__find(&s->sums, &whole);
	bool is_alone = false;
	u64 function = 0;
	u32 depth = 0;

	MAP_EACH_ENTRY(const struct spent *sum, const struct spent_key *key, &s->sums) {
		double others, more = excess_of(s, key, &others);

		if (!key->is_slow || key->kind != r->kind || !key->function || key->line || sum->depth < depth ||
		    100 * more < CODE_PERCENT * excess)
			continue;
		depth = sum->depth;
		best = sum;
		function = key->function;
		is_alone = ALONE_PART * others <= (double)sum->ns && sum->times >= ALONE_TIMES;
	}
	finding_code__fill(&r->code, s->in->stacks, longest_line(s, r->kind, function, best)->frame);
	r->code_ns = best->ns;
	r->phase = rank_phase__of(s->in->stacks, best->stack);
	return is_alone;
}

/* Does chance explain that the others waited longer? Parts of the time without waits do not count. */
static bool is_by_chance(const struct spending *s)
{
	double sum = 0, squares = 0;
	u32 n = 0;

	for (u32 part = 0; part < RANK_PARTS; part++) {
		double more = 0;
		bool counts = false;

		for (u32 i = 0; i < s->n; i++) {
			u64 ns = s->ranks[i].waits ? s->ranks[i].waits->parts[part] : 0;

			counts = counts || ns;
			more += &s->ranks[i] == s->slow ? -(double)ns : (double)ns / (s->n - 1);
		}
		n += counts;
		sum += more;
		squares += more * more;
	}
	return chance__explains(n, sum, squares);
}

static double share_of(const struct job_rank *r)
{
	return r->waits && r->wall_ns ? (double)r->waits->ns / (double)r->wall_ns : 0;
}

/* Sums up how much longer the others waited. Returns whether that is long enough to matter. */
static bool sum_others(const struct job_rank *ranks, u32 n, struct slow_rank *r)
{
	u64 own = r->rank->waits ? r->rank->waits->ns : 0, longest = 0;

	for (u32 i = 0; i < n; i++) {
		const struct rank_waits *w = ranks[i].waits;

		if (&ranks[i] == r->rank)
			continue;
		if (!w || 100 * (share_of(&ranks[i]) - share_of(r->rank)) < EACH_PERCENT)
			return false;
		r->others++;
		r->lost_ns += w->ns > own ? w->ns - own : 0;
		r->wall_ns += ranks[i].wall_ns;
		if (w->longest > longest)
			r->waits = w->stack;
		longest = w->longest > longest ? w->longest : longest;
	}
	return r->others && 100 * (double)r->lost_ns >= LOST_PERCENT * (double)r->wall_ns;
}

/* Explains why the others wait for r->rank. 1: what it does itself explains it, and no chance; 0; else -ENOMEM. */
static int explain(const struct finding_input *in, const u32 *next_sample, const struct job_rank *ranks, u32 n,
		   struct slow_rank *r)
{
	struct spending s = { .in = in, .ranks = ranks, .slow = r->rank, .n = n, .next_sample = next_sample };
	double most = 0;
	int err;

	map__init(&s.sums, sizeof(struct spent_key), sizeof(struct spent));
	err = sum_waits(&s);
	for (u32 i = 0; !err && i < n; i++)
		err = sum_samples(&s, &ranks[i]);
	if (!err)
		most = find_kind(&s, r);
	if (!err && most)
		err = find_code(&s, r, most) || !is_by_chance(&s);
	map__free(&s.sums);
	return err;
}

static int add_job(struct slow_ranks *s, const struct finding_input *in, const struct job_rank *ranks, u32 n)
{
	struct slow_rank r = { .rank = ranks };
	int is_slow;

	for (u32 i = 1; i < n; i++)
		if (share_of(&ranks[i]) < share_of(r.rank))
			r.rank = &ranks[i];
	if (n < 2 || !sum_others(ranks, n, &r))
		return 0;
	is_slow = explain(in, s->ranks.next_sample, ranks, n, &r);
	if (is_slow <= 0)
		return is_slow;
	return array__push(s->list, s->n, r) ? 0 : -ENOMEM;
}

int slow_ranks__find(struct slow_ranks *s, const struct finding_input *in)
{
	int err;

	*s = (struct slow_ranks){ 0 };
	err = job_ranks__list(&s->ranks, in);
	for (u32 from = 0, to; !err && from < s->ranks.n; from = to) {
		for (to = from; to < s->ranks.n && s->ranks.list[to].job == s->ranks.list[from].job;)
			to++;
		err = add_job(s, in, &s->ranks.list[from], to - from);
	}
	return err;
}

void slow_ranks__free(struct slow_ranks *s)
{
	job_ranks__free(&s->ranks);
	free(s->list);
}

const struct slow_rank *slow_ranks__of_job(const struct slow_ranks *s, u32 pid)
{
	const struct job_rank *rank = job_ranks__of(&s->ranks, pid);
	u32 i = rank ? (u32)SEARCH(s->n, at, s->list[at].rank->job < rank->job) : s->n;

	return i < s->n && s->list[i].rank->job == rank->job ? &s->list[i] : NULL;
}
