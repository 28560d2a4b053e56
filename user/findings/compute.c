// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What ran on CPUs: in which function, and whether it was Python, native code or the kernel. */
#include "findings/compute.h"

#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/classify_spin.h"
#include "findings/loop.h"
#include "findings/memory_limit.h"
#include "model/lock_kind.h"
#include "output/table.h"
#include "output/text.h"

/* Time of a frame or function */
struct sum {
	u64 ns;
	u32 stack;
};

/* Returns the innermost frame that is no function of the C library and the like, as findings name it. */
static u32 native_of(const struct finding_input *in, u32 native)
{
	u32 frame = lock_kind__code(in->stacks, native);

	return frame ? frame : native;
}

/* Returns the function of a sample: the user's, else the innermost of Python, else that of the native program. */
static u32 function_of(const struct finding_input *in, const struct stack_parts *parts, u32 *frame)
{
	const struct stack_frame *f;

	*frame = parts->user ? parts->user : parts->python ? parts->python : native_of(in, parts->native);
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

/*
 * Returns the number of the function with most sampled time of the process, or of one thread if tid is not 0. by_gil:
 * only time for which the thread held the GIL counts.
 */
static u32 most_sampled(const struct finding_input *in, u32 pid, u32 tid, bool by_gil)
{
	const struct profile *p = in->profile;
	const struct sum *sum;
	struct map functions;
	u32 code, frame;

	map__init(&functions, sizeof(u32), sizeof(struct sum));
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &p->samples) {
		struct stack_parts parts;

		if (key->thread.pid != pid || (tid && key->thread.tid != tid) || (by_gil && !s->gil_ns) ||
		    classify_spin__is_idle(in->stacks, key->stack))
			continue;
		parts = stack_parts__of(in->stacks, key->stack);
		count(&functions, function_of(in, &parts, &frame), by_gil ? s->gil_ns : s->ns, key->stack);
	}
	code = largest(&functions, &sum);
	map__free(&functions);
	return code;
}

/* Time of a function by the frame of its line, by the native function called, and by the one that called the kernel */
struct computed_sums {
	struct map lines, natives, calls; /* u32 -> struct sum */
};

static void add_sample(struct computed *c, const struct finding_input *in, const struct profile_sample *s, u32 stack,
		       const struct stack_parts *parts, u32 frame, struct computed_sums *sums)
{
	const struct stack_frame *native = stacks__frame(in->stacks, parts->called);
	const struct stack_frame *innermost = stacks__frame(in->stacks, stack);

	c->samples += s->samples;
	c->ns += s->ns;
	c->kernel_ns += s->kernel_ns;
	c->fault_ns += s->fault_ns;
	c->gil_ns += s->gil_ns;
	c->gc_ns += parts->collects ? s->ns : 0;
	c->passing_ns += parts->passes_data ? s->ns : 0;
	if (native) {
		c->native_ns += s->ns - (s->kernel_ns < s->ns ? s->kernel_ns : s->ns);
		count(&sums->natives, native->code ? native->code : parts->called, s->ns, parts->called);
	}
	count(&sums->lines, frame, s->ns, stack);
	if (s->kernel_ns > s->fault_ns && innermost->kind == FRAME_NATIVE && !stack_frame__is_address(innermost))
		count(&sums->calls, innermost->code, s->kernel_ns - s->fault_ns, stack);
}

void computed__of(struct computed *c, const struct finding_input *in, u32 pid, u32 code)
{
	const struct profile *p = in->profile;
	struct computed_sums sums;
	struct callees callees;
	const struct sum *sum;

	memset(c, 0, sizeof(*c));
	if (!code)
		code = most_sampled(in, pid, 0, false);
	map__init(&sums.lines, sizeof(u32), sizeof(struct sum));
	map__init(&sums.natives, sizeof(u32), sizeof(struct sum));
	map__init(&sums.calls, sizeof(u32), sizeof(struct sum));
	callees__init(&callees, in->stacks);
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &p->samples) {
		struct stack_parts parts;
		u32 frame;

		if (key->thread.pid != pid || classify_spin__is_idle(in->stacks, key->stack))
			continue;
		c->all_ns += s->ns;
		c->all_gil_ns += s->gil_ns;
		parts = stack_parts__of(in->stacks, key->stack);
		c->all_gc_ns += parts.collects ? s->ns : 0;
		if (!code || function_of(in, &parts, &frame) != code)
			continue;
		add_sample(c, in, s, key->stack, &parts, frame, &sums);
		callees__add(&callees, key->stack, parts.user ? parts.user : parts.python ? 0 : frame, s->ns);
	}
	if (largest(&sums.lines, &sum))
		c->stack = sum->stack;
	/* missing frames have no file, and their name says nothing */
	if (largest(&sums.natives, &sum) && *stacks__frame(in->stacks, sum->stack)->file)
		stack_frame__native(stacks__frame(in->stacks, sum->stack), c->native, sizeof(c->native));
	if (largest(&sums.calls, &sum) && 4 * sum->ns >= c->kernel_ns)
		snprintf(c->calls, sizeof(c->calls), "%s %s",
			 2 * sum->ns >= c->kernel_ns ? ", in calls of" : ", most often in calls of",
			 stacks__frame(in->stacks, sum->stack)->name);
	callees__finish(&callees, false, &c->callee);
	MAPS_FREE(&sums.lines, &sums.natives, &sums.calls);
}

void computed__of_thread(struct computed *c, const struct finding_input *in, struct thread_key thread)
{
	computed__of(c, in, thread.pid, most_sampled(in, thread.pid, thread.tid, false));
}

void computed__of_gil(struct computed *c, const struct finding_input *in, u32 pid, u32 tid)
{
	computed__of(c, in, pid, most_sampled(in, pid, tid, true));
}

/* Returns the native function: the one that it mostly called is more specific than the one that Python called. */
static const char *native_text(const struct computed *c, char buf[CALLEE_TEXT])
{
	return c->callee.is_native ? callee__deepest(&c->callee, buf, CALLEE_TEXT) : c->native;
}

bool computed__passes_data(const struct computed *c)
{
	return 2 * c->passing_ns > c->ns;
}

char *computed__activity(const struct computed *c, char *buf, size_t size)
{
	char callee[CALLEE_TEXT];
	const char *native = native_text(c, callee);

	*buf = '\0';
	if (c->samples && 2 * c->gc_ns >= c->ns)
		snprintf(buf, size, "collected garbage");
	else if (computed__passes_data(c))
		snprintf(buf, size, "pickled and copied data for other processes");
	else if (c->samples && 2 * c->native_ns >= c->ns)
		snprintf(buf, size, "computed in C%s%s", *native ? ": " : "", native);
	else if (c->samples)
		snprintf(buf, size, c->callee.percent ? "computed in Python (%s)" : "computed in Python",
			 callee__text(&c->callee, callee, sizeof(callee)));
	return buf;
}

/* If that much is in the kernel, the calls explain more than that the rest is in Python. */
#define KERNEL_PERCENT 25

/* Adds what the function's time on a CPU mostly was. */
static void add_mostly(struct text_buffer *s, const struct finding *f, const struct computed *c)
{
	bool has_callee = c->callee.percent > 0;
	char callee[CALLEE_TEXT];
	const char *native = native_text(c, callee);

	if (2 * c->gc_ns >= c->ns)
		text__add(s, ", mostly in the garbage collector");
	else if (computed__passes_data(c))
		text__add(s, ", mostly to pickle and copy data for other processes");
	else if (2 * c->fault_ns >= c->ns)
		text__add(s, ", mostly in page faults or interrupts");
	else if (100 * c->kernel_ns >= 60 * c->ns)
		text__add(s, ", mostly in the kernel%s", c->callee.is_native ? "" : c->calls);
	else if (2 * c->native_ns >= c->ns && *f->code.function)
		text__add(s, ", mostly in native code%s%s", *native ? ": " : "", native);
	else if (100 * c->kernel_ns >= KERNEL_PERCENT * c->ns && *c->calls && !c->callee.is_native)
		text__add(s, ", %.0f%% in the kernel%s", table__percent(c->kernel_ns, c->ns), c->calls);
	else if (*f->code.function && !has_callee)
		text__add(s, ", mostly in Python code");
}

static void describe(struct finding *f, const struct computed *c)
{
	struct text_buffer s = { .buf = f->detail, .size = sizeof(f->detail) };
	bool is_in_native = c->callee.is_native && 2 * c->native_ns >= c->ns && *f->code.function;
	char text[CALLEE_TEXT];

	text__add(&s, "%.0f%% of its CPU time was in this function", table__percent(c->ns, c->all_ns));
	/* add_mostly() names the native function */
	if (is_in_native ? *c->callee.outer : c->callee.percent > 0)
		text__add(&s, ", %.0f%% of that in %s", c->callee.percent,
			  is_in_native ? c->callee.outer : callee__text(&c->callee, text, sizeof(text)));
	add_mostly(&s, f, c);
}

/*
 * A line that takes this much of the process's CPU time, with all that it calls, is what the process computes. Native
 * stacks are often cut, and programs without Python have no lines of the user's own, so less is enough for a function
 * of theirs.
 */
#define NEARLY_ALL_PERCENT 90
#define MOST_PERCENT	   60

struct line_key {
	u32 code, line;
};

/* Time of a line or function */
struct total {
	u64 ns, line_ns; /* line_ns: of the function's line with most */
	u32 stack; /* the last one in which it was counted */
	u32 frame;
};

/* Is it a line of the user's code? Of a stack without Python code all named functions count. */
static bool is_counted(const struct stack_frame *f, bool has_python)
{
	if (has_python)
		return f->line && stack_frame__is_own(f);
	return f->kind == FRAME_NATIVE && *f->file && !strstr(f->name, "+0x");
}

/*
 * Sums the lines of the user's functions over the stacks of a thread's samples, with tid 0 of all of a process. Returns
 * the time of these samples, ns.
 */
static u64 sum_totals(const struct finding_input *in, struct thread_key thread, struct map *totals)
{
	const struct profile *p = in->profile;
	const struct stack_frame *f;
	u64 all = 0;

	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &p->samples) {
		struct stack_parts parts;

		if (key->thread.pid != thread.pid || (thread.tid && key->thread.tid != thread.tid) ||
		    classify_spin__is_idle(in->stacks, key->stack))
			continue;
		all += s->ns;
		parts = stack_parts__of(in->stacks, key->stack);
		for (u32 at = key->stack; (f = stacks__frame(in->stacks, at)) != NULL && !classify__starts_child(f);
		     at = f->caller) {
			struct line_key line = { f->code, f->line };
			struct total *t = is_counted(f, parts.python) ? map__get(totals, &line) : NULL;

			/* a line counts once in a stack, also if its function is recursive */
			if (!t || (t->ns && t->stack == key->stack))
				continue;
			t->ns += s->ns;
			t->stack = key->stack;
			t->frame = at;
		}
	}
	return all;
}

/* Returns the innermost line with at least min_ns; NULL: none. */
static const struct total *innermost(const struct finding_input *in, const struct map *totals, u64 min_ns)
{
	const struct total *best = NULL;

	MAP_EACH(const struct total *t, totals)
		if (t->ns >= min_ns &&
		    (!best || stacks__depth(in->stacks, t->frame) > stacks__depth(in->stacks, best->frame)))
			best = t;
	return best;
}

static bool is_known_code(const struct finding_code *code, const struct finding_code *known)
{
	return *code->function ? finding_code__is_same(code, known) :
				 !*code->native || !strcmp(code->native, known->native);
}

/* Fills code and *percent with the innermost code, other than `known`, that has enough of the thread's CPU time. */
static bool find_caller(const struct finding_input *in, struct thread_key thread, const struct computed *c,
			const struct finding_code *known, struct finding_code *code, double *percent)
{
	static const u32 least[] = { MOST_PERCENT, NEARLY_ALL_PERCENT };
	bool has_python = stack_parts__of(in->stacks, c->stack).python, is_found = false;
	struct map totals;
	u64 all;

	map__init(&totals, sizeof(struct line_key), sizeof(struct total));
	all = sum_totals(in, thread, &totals);
	for (u32 i = has_python; i < ARRAY_LEN(least) && !is_found; i++) {
		const struct total *t = innermost(in, &totals, least[i] * all / 100);

		*code = (struct finding_code){ 0 };
		if (t)
			finding_code__fill(code, in->stacks, t->frame);
		is_found = t && !is_known_code(code, known);
		*percent = t ? table__percent(t->ns, all) : 0;
	}
	map__free(&totals);
	return is_found;
}

/*
 * Of a process that computes in many functions, adds the line that called them: the innermost with nearly all of the
 * CPU time.
 */
static void add_caller(const struct finding_input *in, struct finding *f, const struct computed *c)
{
	static const char callees[] = " with all that it calls";
	struct finding_code code;
	char text[224], what[64];
	double percent;

	if (100 * c->ns >= NEARLY_ALL_PERCENT * c->all_ns ||
	    !find_caller(in, (struct thread_key){ f->pid, 0 }, c, &f->code, &code, &percent))
		return;
	snprintf(what, sizeof(what), "%.0f%%", percent);
	finding_code__write(&code, " in ", what, text, sizeof(text) - sizeof(callees));
	finding__add_detail(f, strcat(text, callees));
}

void computed__fill_code(const struct finding_input *in, struct thread_key thread, const struct computed *c,
			 struct finding_code *code)
{
	struct finding_code caller;
	double percent;

	if (!c->samples)
		return;
	finding_code__fill(code, in->stacks, c->stack);
	if (!*code->function && 100 * c->ns < MOST_PERCENT * c->all_ns &&
	    find_caller(in, thread, c, code, &caller, &percent))
		*code = caller;
}

/* Further code with at least this part of the CPU time is named, at most so many functions or lines. */
#define FURTHER_PERCENT 10
#define FURTHER_MAX	2

/*
 * Sums the samples of a process by function of the user's code, without the finding's own line. A line of the finding's
 * function counts by itself if it calls native code: it is an operation of its own, such as one of a training step.
 */
static void sum_further(const struct finding_input *in, u32 pid, u32 named, struct map *sums)
{
	const struct stack_frame *n = stacks__frame(in->stacks, named), *f;
	struct map lines;

	map__init(&lines, sizeof(struct line_key), sizeof(u64));
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		struct stack_parts parts;
		struct line_key line;
		struct total *t;
		u64 *ns;

		if (key->thread.pid != pid)
			continue;
		parts = stack_parts__of(in->stacks, key->stack);
		f = stacks__frame(in->stacks, parts.user);
		if (!f || (f->line == n->line && !strcmp(f->file, n->file)) || (f->code == n->code && !parts.called))
			continue;
		line = (struct line_key){ f->code, f->line };
		ns = map__get(&lines, &line);
		line.line = f->code == n->code ? f->line : 0;
		t = ns ? map__get(sums, &line) : NULL;
		if (!t)
			continue;
		t->ns += s->ns;
		*ns += s->ns;
		if (*ns <= t->line_ns)
			continue;
		t->line_ns = *ns;
		t->frame = parts.user;
	}
	map__free(&lines);
}

/* Adds the code that takes most of the CPU time after the named code. */
static void add_further(const struct finding_input *in, struct finding *f, const struct computed *c)
{
	u32 named = stack_parts__of(in->stacks, c->stack).user;
	char text[224], before[32];
	struct map sums;

	if (!named)
		return;
	map__init(&sums, sizeof(struct line_key), sizeof(struct total));
	sum_further(in, f->pid, named, &sums);
	for (u32 n = 0; n < FURTHER_MAX; n++) {
		struct finding_code code = { 0 };
		struct total *most = NULL;

		MAP_EACH(struct total *t, &sums)
			most = !most || t->ns > most->ns ? t : most;
		if (!most || 100 * most->ns < FURTHER_PERCENT * c->all_ns)
			break;
		snprintf(before, sizeof(before), "also %.0f%%", table__percent(most->ns, c->all_ns));
		finding_code__fill(&code, in->stacks, most->frame);
		finding_code__write(&code, " in ", before, text, sizeof(text));
		finding__add_detail(f, text);
		most->ns = 0;
	}
	map__free(&sums);
}

double computed__complete(const struct finding_input *in, struct finding *f)
{
	struct computed c;

	f->times = 0;
	*f->call = '\0';
	snprintf(f->report, sizeof(f->report), "lines");
	computed__of(&c, in, f->pid, 0);
	if (c.samples) {
		f->confidence = FINDING_ATTRIBUTED;
		finding_code__fill(&f->code, in->stacks, c.stack);
		/* describe() says how much of the time was in native code */
		f->code.is_foreign = f->code.is_foreign && !*c.native;
		describe(f, &c);
		if (2 * c.fault_ns >= c.ns)
			memory_limit__add(in, f);
		add_further(in, f, &c);
		loop__add_computation(in, c.stack, 2 * c.ns >= c.all_ns, f);
		add_caller(in, f, &c);
		return c.all_ns ? (double)c.all_gc_ns / (double)c.all_ns : 0;
	}
	snprintf(f->report, sizeof(f->report), "sched");
	if (!query__has_family(in->q, "sample"))
		snprintf(f->advice, sizeof(f->advice), "%s", "`sonde record -F 99` shows in which functions.");
	return 0;
}
