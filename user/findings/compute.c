// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What ran on CPUs: in which function, and whether it was Python, native code or the kernel. */
#include "findings/compute.h"

#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "output/table.h"

/* Time of a frame or function */
struct sum {
	u64 ns;
	u32 stack;
};

/* Returns the function of a sample: the user's, else the innermost of Python, else the innermost native one. */
static u32 function_of(const struct finding_input *in, const struct stack_parts *parts, u32 *frame)
{
	const struct stack_frame *f;

	*frame = parts->user ? parts->user : parts->python ? parts->python : parts->native;
	f = stacks__frame(in->stacks, *frame);
	return f ? f->code : 0;
}

static void count(struct map *sums, u32 key, u64 ns, u32 stack)
{
	struct sum *s = key ? map__get(sums, &key) : NULL;

	if (!s)
		return;
	s->ns += ns;
	s->stack = stack;
}

static u32 largest(const struct map *sums, const struct sum **sum)
{
	u32 key = 0;

	*sum = NULL;
	for (u32 i = 0; i < sums->n; i++) {
		const struct sum *s = map__value(sums, i);

		if (*sum && s->ns <= (*sum)->ns)
			continue;
		*sum = s;
		key = *(const u32 *)map__key(sums, i);
	}
	return key;
}

/* Returns the number of the process's function with most sampled time. */
static u32 most_sampled(const struct finding_input *in, u32 pid)
{
	const struct profile *p = in->profile;
	const struct sum *sum;
	struct map functions;
	u32 code, frame;

	map__init(&functions, sizeof(u32), sizeof(struct sum));
	for (u32 i = 0; i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);
		const struct profile_sample *s = map__value(&p->samples, i);
		struct stack_parts parts;

		if (key->thread.pid != pid)
			continue;
		parts = stack_parts__of(in->stacks, key->stack);
		count(&functions, function_of(in, &parts, &frame), s->ns, key->stack);
	}
	code = largest(&functions, &sum);
	map__free(&functions);
	return code;
}

static void add_sample(struct computed *c, const struct finding_input *in, const struct profile_sample *s, u32 stack,
		       const struct stack_parts *parts, u32 frame, struct map *lines, struct map *natives)
{
	const struct stack_frame *native = stacks__frame(in->stacks, parts->called);

	c->samples += s->samples;
	c->ns += s->ns;
	c->kernel_ns += s->kernel_ns;
	if (native) {
		c->native_ns += s->ns - (s->kernel_ns < s->ns ? s->kernel_ns : s->ns);
		count(natives, native->code ? native->code : parts->called, s->ns, parts->called);
	}
	count(lines, frame, s->ns, stack);
}

void computed__of(struct computed *c, const struct finding_input *in, u32 pid, u32 code)
{
	const struct profile *p = in->profile;
	struct map lines, natives;
	const struct sum *sum;

	memset(c, 0, sizeof(*c));
	if (!code)
		code = most_sampled(in, pid);
	map__init(&lines, sizeof(u32), sizeof(struct sum));
	map__init(&natives, sizeof(u32), sizeof(struct sum));
	for (u32 i = 0; i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);
		const struct profile_sample *s = map__value(&p->samples, i);
		struct stack_parts parts;
		u32 frame;

		if (key->thread.pid != pid)
			continue;
		c->all_ns += s->ns;
		parts = stack_parts__of(in->stacks, key->stack);
		if (code && function_of(in, &parts, &frame) == code)
			add_sample(c, in, s, key->stack, &parts, frame, &lines, &natives);
	}
	if (largest(&lines, &sum))
		c->stack = sum->stack;
	if (largest(&natives, &sum))
		stacks__function(in->stacks, sum->stack, c->native, sizeof(c->native));
	map__free(&lines);
	map__free(&natives);
}

static void describe(struct finding *f, const struct computed *c)
{
	double share = table__percent(c->ns, c->all_ns);

	if (100 * c->kernel_ns >= 60 * c->ns)
		snprintf(f->detail, sizeof(f->detail), "%.0f%% of its CPU time there, mostly in the kernel", share);
	else if (2 * c->native_ns >= c->ns && *c->native && *f->code.function)
		snprintf(f->detail, sizeof(f->detail), "%.0f%% of its CPU time there, mostly in native code: %s", share,
			 c->native);
	else
		snprintf(f->detail, sizeof(f->detail), "%.0f%% of its CPU time there%s", share,
			 *f->code.function ? ", mostly in Python code" : "");
}

void computed__complete(const struct finding_input *in, struct finding *f)
{
	struct computed c;

	f->times = 0;
	*f->call = '\0';
	snprintf(f->report, sizeof(f->report), "lines");
	computed__of(&c, in, f->pid, 0);
	if (c.samples) {
		f->confidence = FINDING_ATTRIBUTED;
		finding_code__fill(&f->code, in->stacks, c.stack);
		describe(f, &c);
		if (stack_parts__of(in->stacks, c.stack).loop)
			finding__add_detail(f, "an event loop called it, and could run nothing else meanwhile");
		return;
	}
	snprintf(f->report, sizeof(f->report), "sched");
	if (!query__has_family(in->q, "sample"))
		snprintf(f->advice, sizeof(f->advice), "%s", "`sonde record -F 99` shows in which functions.");
}
