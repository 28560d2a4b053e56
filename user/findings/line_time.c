// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A wait is in a line if one of the frames of its stack is. Time on a CPU, and time in which a thread was preempted, is
 * divided by the thread's samples.
 */
#include "findings/line_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/group.h"
#include "output/table.h"
#include "output/text.h"
#include "util/array.h"
#include "util/path.h"

struct line_thread {
	u64 in_line; /* of waits, ns */
	u64 on_cpu; /* ns on a CPU or preempted */
	u64 samples, samples_in_line; /* ns */
};

struct line {
	const struct finding_input *in;
	const struct finding *f;
	struct map stacks; /* u32 stack -> u8: enum below */
	struct map threads; /* struct thread_key -> struct line_thread */
};

/* A finding may be that of several processes with the same code. */
static bool is_of_finding(const struct line *l, struct thread_key thread)
{
	return l->f->processes > 1 || thread.pid == l->f->pid;
}

enum { STACK_HAS_LINE = 1, STACK_LACKS_LINE };

static bool is_line(const struct stack_frame *frame, const struct finding_code *code)
{
	/* code->file has only the end of a long path */
	return frame->line == code->line && frame->kind == FRAME_PYTHON && !strcmp(frame->name, code->function) &&
	       path__ends_with(frame->file, code->file);
}

/* 1: a frame of the stack is in the line, 0: none is; else -ENOMEM */
static int has_line(struct line *l, u32 stack)
{
	u8 found = 0, *known;
	const struct stack_frame *frame;
	u32 at;

	for (at = stack; !found && (frame = stacks__frame(l->in->stacks, at)) != NULL; at = frame->caller) {
		known = map__find(&l->stacks, &at);
		found = known ? *known : is_line(frame, &l->f->code) ? STACK_HAS_LINE : 0;
	}
	/* the callers' frames are those of many stacks, so each is looked at once */
	for (u32 end = at, at = stack; at != end; at = stacks__frame(l->in->stacks, at)->caller) {
		known = map__get(&l->stacks, &at);
		if (!known)
			return -ENOMEM;
		*known = found ? found : STACK_LACKS_LINE;
	}
	return found == STACK_HAS_LINE;
}

static int add_cells(struct line *l)
{
	const struct profile *p = l->in->profile;

	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &p->cells) {
		bool is_wait = key->state == ACTIVITY_BLOCKED || cell->is_delay || key->stack;
		struct line_thread *t;
		int has;

		if (!is_of_finding(l, key->thread) || key->state == ACTIVITY_UNKNOWN)
			continue;
		t = map__get(&l->threads, &key->thread);
		/* a wait without a stack has the code of similar ones */
		has = is_wait ? has_line(l, key->stack ? key->stack : cell->code) : 0;
		if (!t || has < 0)
			return -ENOMEM;
		if (is_wait)
			t->in_line += has ? cell->ns : 0;
		else
			t->on_cpu += cell->ns;
	}
	return 0;
}

static int add_samples(struct line *l)
{
	const struct profile *p = l->in->profile;

	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &p->samples) {
		struct line_thread *t;
		int has;

		if (!is_of_finding(l, key->thread))
			continue;
		t = map__get(&l->threads, &key->thread);
		has = has_line(l, key->stack);
		if (!t || has < 0)
			return -ENOMEM;
		t->samples += s->ns;
		t->samples_in_line += has ? s->ns : 0;
	}
	return 0;
}

/* A thread that spends less than a twentieth of its time in the line is not counted as one of the finding's. */
#define THREAD_SHARE 20

/* The time of threads that were in the line */
struct line_sum {
	u64 ns, wall; /* in the line, and in all */
	u32 threads;
};

static struct line_sum sum_of(const struct line *l)
{
	struct line_sum sum = { 0 };

	for (u32 i = 0; i < l->threads.n; i++) {
		const struct line_thread *t = map__value(&l->threads, i);
		const struct profile_thread *of = map__find(&l->in->profile->threads, map__key(&l->threads, i));
		double part = t->samples ? (double)t->samples_in_line / (double)t->samples : 0;
		u64 took = t->in_line + (u64)(part * (double)t->on_cpu);

		if (!of || took < of->wall / THREAD_SHARE)
			continue;
		sum.ns += took;
		sum.wall += of->wall;
		sum.threads++;
	}
	return sum;
}

/* Is the wait a part of the line's work, so that the time of the whole line is of interest? */
static bool is_part_of_work(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_GIL, FINDING_LOCK, FINDING_DISK, FINDING_MEMORY, FINDING_PEER, FINDING_CHILD,
			 FINDING_LOADER, FINDING_CALL, FINDING_BLOCKED);
}

#define MORE_POINTS 5

/* Did several threads compute in turns? Then the sum of their times shows more than the average. */
static bool is_shared_work(const struct finding *f)
{
	return (f->kind == FINDING_COMPUTE || f->kind == FINDING_CPU) && f->threads > 1 && f->processes == 1;
}

static void add_text(const struct line *l, const struct line_sum *sum, struct finding *f)
{
	double share = table__percent(sum->ns, sum->wall);
	u64 duration = query__measured(l->in->q);
	char text[96], spent[TEXT_NUMBER];

	/* a share above 100% would need an explanation */
	if (is_shared_work(f) && sum->threads > 1 && sum->ns > duration)
		snprintf(text, sizeof(text), "waits included, its threads spent %s in this line",
			 text__ns(spent, sizeof(spent), sum->ns));
	else if (is_shared_work(f) && sum->threads > 1)
		snprintf(text, sizeof(text), "in sum, its threads spent %.0f%% of the time in this line",
			 table__percent(sum->ns, duration));
	else if (is_part_of_work(f->kind) && sum->threads == f->threads && sum->ns <= sum->wall &&
		 share >= table__percent(f->lost_ns, f->wall_ns) + MORE_POINTS)
		snprintf(text, sizeof(text), "in total, this line took %.0f%% of the time", share);
	else
		return;
	finding__add_detail(f, text);
}

int line_time__add(const struct finding_input *in, struct finding *f)
{
	struct line l = { .in = in, .f = f };
	struct line_sum sum;
	int err;

	if (!f->code.line || (!is_part_of_work(f->kind) && !is_shared_work(f)))
		return 0;
	map__init(&l.stacks, sizeof(u32), sizeof(u8));
	map__init(&l.threads, sizeof(struct thread_key), sizeof(struct line_thread));
	err = add_cells(&l);
	if (!err)
		err = add_samples(&l);
	sum = sum_of(&l);
	MAPS_FREE(&l.stacks, &l.threads);
	if (!err)
		add_text(&l, &sum, f);
	return err;
}
