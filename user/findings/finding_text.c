// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes a finding as a sentence, from its fields only. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "model/lock_kind.h"
#include "output/table.h"
#include "output/text.h"
#include "util/array.h"
#include "util/path.h"

static const struct kind {
	const char *key, *before, *after;
	double weight;
	enum finding_colour colour;
} kinds[FINDING_KINDS] = {
#define KIND_ROW(kind, ...) [kind] = { __VA_ARGS__ },
	FINDING_KINDS_LIST(KIND_ROW)
};

static const struct finding_colour_text colours[FINDING_COLOURS] = {
#define COLOUR_ROW(colour, ...) [colour] = { __VA_ARGS__ },
	FINDING_COLOURS_LIST(COLOUR_ROW)
};

const char *finding_kind__key(enum finding_kind kind)
{
	return kinds[kind].key;
}

enum finding_colour finding_kind__colour(enum finding_kind kind)
{
	return kinds[kind].colour;
}

const struct finding_colour_text *finding_colour__text(enum finding_colour colour)
{
	return &colours[colour];
}

char *finding_kind__phrase(enum finding_kind kind, char *buf, size_t size)
{
	const char *before = kinds[kind].before;
	size_t len = strlen(before);

	/* text before a share, as in "collected garbage in 20% of 5 s" */
	if (len > 3 && !strcmp(before + len - 3, " in"))
		len -= 3;
	snprintf(buf, size, "%.*s%s", (int)len, before, kinds[kind].after);
	return buf;
}

double finding_kind__weight(enum finding_kind kind)
{
	return kinds[kind].weight;
}

static void fill_line(struct finding_code *code, const char *file, u32 line)
{
	size_t len = strlen(file);

	/* the end of a long path is stored, because it is more specific than the beginning */
	if (len >= sizeof(code->file))
		file += len - sizeof(code->file) + 1;
	while (len >= sizeof(code->file) && (*file & 0xc0) == 0x80)
		file++;
	snprintf(code->file, sizeof(code->file), "%s", file);
	code->line = line;
}

static void fill_python(struct finding_code *code, const struct stack_frame *f)
{
	fill_line(code, f->file, f->line);
	snprintf(code->function, sizeof(code->function), "%s", f->name);
	*code->caller = '\0'; /* that of the function which was named before */
}

void finding_code__fill_caller(struct finding_code *code, const struct stacks *stacks, u32 stack)
{
	u32 user = stack_parts__of(stacks, stack).user;
	const struct stack_frame *f = stacks__frame(stacks, user), *caller = f;

	while (caller && caller->code == f->code)
		caller = stacks__frame(stacks, caller->caller);
	if (caller && stack_frame__is_own(caller))
		fill_python(code, caller);
}

bool finding_code__is_same(const struct finding_code *a, const struct finding_code *b)
{
	return !strcmp(a->function, b->function) && !strcmp(a->file, b->file);
}

void finding_code__fill_native(struct finding_code *code, const struct stack_frame *f)
{
	stack_frame__native(f, code->native, sizeof(code->native));
	if (!*code->function && f->line)
		fill_line(code, stack_frame__source(f), f->line);
}

void finding_code__fill(struct finding_code *code, const struct stacks *stacks, u32 stack)
{
	struct stack_parts parts = stack_parts__of(stacks, stack);
	const struct stack_frame *f = stacks__frame(stacks, parts.user ? parts.user : parts.python);
	u32 native = parts.called ? parts.called : parts.native;

	/* without Python frames, names the program's own function rather than one of the C library */
	if (!f && lock_kind__code(stacks, stack))
		native = lock_kind__code(stacks, stack);
	if (f)
		fill_python(code, f);
	f = stacks__frame(stacks, native);
	if (f)
		finding_code__fill_native(code, f);
	code->is_foreign = parts.called && parts.is_foreign;
}

/* Returns the adverb for a share of the lost time. */
static const char *mostly(double percent)
{
	return percent >= 90 ? "" : percent >= 50 ? "mostly " : "most often ";
}

void finding_code__add(struct text_buffer *s, const char *before, const struct finding_code *c)
{
	const char *file = path__file_name(c->file), *object = strstr(c->native, " (");
	int name = object ? (int)(object - c->native) : (int)strlen(c->native);

	if (*c->function && *file && c->line)
		text__add(s, "%s%s (%s:%u)", before, c->function, file, c->line);
	else if (*c->function)
		text__add(s, *file ? "%s%s (%s)" : "%s%s", before, c->function, file);
	else if (*c->native && *file && c->line)
		text__add(s, "%s%.*s (%s:%u)", before, name, c->native, file, c->line);
	else if (*c->native)
		text__add(s, "%s%s", before, c->native);
	if (*c->function && *c->caller)
		text__add(s, ", %scalled by %s", mostly(c->caller_percent), c->caller);
	if (*c->function && *c->native && c->is_foreign)
		text__add(s, ", which called %s", c->native);
}

void finding_code__write(const struct finding_code *code, const char *before, const char *text, char *buf, size_t size)
{
	struct text_buffer s = { .buf = buf, .size = size };

	text__add(&s, "%s", text);
	finding_code__add(&s, before, code);
}

void finding_counterpart__set_activity(struct finding_counterpart *c, const struct finding_code *code, const char *text)
{
	c->activity_code = *code;
	finding_code__write(code, " in ", text, c->activity, sizeof(c->activity));
}

/* An average of whole numbers has a decimal if it is small and not whole. */
static int decimals(double average)
{
	return average < 10 && fabs(average - round(average)) >= 0.05;
}

/* Does the time of one thread mean little, as its threads come and go? Then the sum of all is printed. */
static bool is_brief(const struct finding *f, const struct query *q)
{
	return f->threads > 1 && f->wall_ns / f->threads < query__measured(q) / 10;
}

static void add_subject(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[96], service[96];

	names__label(q->names, label, sizeof(label), f->pid, q->tids.n ? q->tids.list[0] : 0);
	names__service(q->names, service, sizeof(service), f->pid);
	if (f->processes > 1)
		text__add(s, "%s and %u other process%s ", label, f->processes - 1, f->processes == 2 ? "" : "es");
	else
		text__add(s, *service ? "%s (%s) " : "%s ", label, service);
	if (f->tasks > 0)
		text__add(s, "(%s%.*f of %.*f asyncio tasks) ", decimals(f->tasks) ? "on average " : "",
			  decimals(f->tasks), f->tasks, decimals(f->all_tasks), f->all_tasks);
	else if (f->threads > f->processes)
		text__add(s, "(%s %sthreads) ", TEXT_COUNT(f->threads), is_brief(f, q) ? "short-lived " : "");
}

static void add_share(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	const struct kind *k = &kinds[f->kind];
	u32 threads = f->threads ? f->threads : 1;
	char time[TEXT_NUMBER], wall[TEXT_NUMBER + 24];

	if (is_brief(f, q))
		snprintf(wall, sizeof(wall), "the %s that these threads lived",
			 text__ns(time, sizeof(time), f->wall_ns));
	else
		text__ns(wall, sizeof(wall), f->wall_ns / threads);
	if (f->ran_ns && (f->kind == FINDING_COMPUTE || f->kind == FINDING_CPU))
		text__add(s, "needed a CPU for %.0f%% of %s and had one for %.0f%%",
			  table__percent(f->lost_ns, f->wall_ns), wall, table__percent(f->ran_ns, f->wall_ns));
	else
		text__add(s, "%s %.0f%% of %s%s%s%s", k->before, table__percent(f->lost_ns, f->wall_ns), wall,
			  f->words ? " for " : "", f->words ? f->words : k->after,
			  f->delay_ns && 2 * f->delay_ns >= f->lost_ns ? " and then for a CPU" : "");
}

static void add_calls(struct text_buffer *s, const struct finding *f)
{
	double percent = table__percent(f->call_ns, f->lost_ns);
	const char *of = *f->object ? " of " : "";

	if (!*f->call && !*f->object)
		return;
	if (f->kind == FINDING_LOCK && f->times)
		text__add(s, ":" CLAUSE "%s wait%s%s%s, %s%s", TEXT_COUNT(f->times), f->times == 1 ? "" : "s",
			  *f->object ? " for " : "", f->object, TEXT_NS(f->lost_ns / f->times),
			  f->times == 1 ? "" : " each");
	else if (!*f->call && f->kind != FINDING_DISK)
		text__add(s, ":" CLAUSE "%s", f->object);
	else if (!*f->call)
		return;
	else if (percent < 50)
		text__add(s, ":" CLAUSE "most often in %s%s%s (%.0f%%), %s time%s of %s", f->call, of, f->object,
			  percent, TEXT_COUNT(f->call_times), text__s(f->call_times),
			  TEXT_NS(f->call_ns / (f->call_times ? f->call_times : 1)));
	else if (f->call_times > 1)
		text__add(s, ":" CLAUSE "%s%s times in %s%s%s, %s each", mostly(percent), TEXT_COUNT(f->call_times),
			  f->call, of, f->object, TEXT_NS(f->call_ns / f->call_times));
	else
		text__add(s, ":" CLAUSE "%sin %s%s%s", mostly(percent), f->call, of, f->object);
}

/* Writes the name of the counterpart. A thread of the same process is called a thread, not by the process's name. */
static const char *label_counterpart(const struct finding *f, const struct query *q, char *buf, size_t size)
{
	const struct finding_counterpart *counterpart = &f->counterpart;
	const struct task *task = names__task(q->names, counterpart->pid, counterpart->tid);
	const char *name = task ? names__string(q->names, task->python) : "";

	if (counterpart->pid != f->pid || !counterpart->tid || counterpart->tid == counterpart->pid)
		return names__label(q->names, buf, size, counterpart->pid, counterpart->tid);
	snprintf(buf, size, *name ? "thread %u (%s)" : "thread %u", names__number(q->names, counterpart->tid), name);
	return buf;
}

static void add_counterpart(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	const struct finding_counterpart *counterpart = &f->counterpart;
	char label[64];
	bool has_code = *counterpart->code.function || *counterpart->code.native;

	if (!counterpart->pid && !has_code && !*counterpart->activity)
		return;
	if (counterpart->cpus_percent) {
		text__add(s, ";" CLAUSE "%s had these CPUs for %.0f%% of the time",
			  names__label(q->names, label, sizeof(label), counterpart->pid, 0), counterpart->cpus_percent);
		return;
	}
	if (f->kind == FINDING_CPU || f->kind == FINDING_COMPUTE || f->kind == FINDING_AFFINITY) {
		text__add(s, ";" CLAUSE "%s preempted it most often (%.0f%% of the times)",
			  names__label(q->names, label, sizeof(label), counterpart->pid, counterpart->tid),
			  counterpart->percent);
		return;
	}
	if (counterpart->is_end_of_chain) {
		text__add(s, ";" CLAUSE "in the end it waited for %s, which %s",
			  counterpart->pid ? label_counterpart(f, q, label, sizeof(label)) : "others",
			  counterpart->activity);
		finding_code__add(s, " in ", &counterpart->code);
		return;
	}
	text__add(s, ";" CLAUSE "%s%s by", counterpart->percent ? mostly(counterpart->percent) : "",
		  counterpart->is_holder || f->kind == FINDING_GIL || f->kind == FINDING_LOCK ||
				  f->kind == FINDING_FILE_LOCK ?
			  "held" :
		  f->kind == FINDING_TRACED ? "traced" :
					      "ended");
	finding_code__add(s, " ", &counterpart->code);
	if (counterpart->pid && (counterpart->pid != f->pid || !has_code))
		text__add(s, "%s%s", has_code ? " of " : " ", label_counterpart(f, q, label, sizeof(label)));
	if (counterpart->percent && counterpart->percent < 90)
		text__add(s, " (%.0f%%)", counterpart->percent);
	if (*counterpart->activity)
		text__add(s, ", which %s", counterpart->activity);
}

/* Did it lack a CPU in other functions, too, for five points of the time or more? */
static bool is_partly_outside(const struct finding *f)
{
	return f->in_code_ns && table__percent(f->in_code_ns, f->wall_ns) + 5 <= table__percent(f->lost_ns, f->wall_ns);
}

/* Writes what the threads waited for, and which thread or process caused the wait. */
static void add_wait(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	add_subject(s, f, q);
	add_share(s, f, q);
	finding_code__add(s, " in ", &f->code);
	add_calls(s, f);
	if (f->delay_ns >= f->lost_ns / 4 && f->delay_ns)
		text__add(s, ";" CLAUSE "%.0f%% of this was waiting for a CPU after that wait was over",
			  table__percent(f->delay_ns, f->lost_ns));
	if (f->ran_ns && f->kind != FINDING_COMPUTE && f->kind != FINDING_CPU)
		text__add(s, ";" CLAUSE "it ran for %.0f%% of the time", table__percent(f->ran_ns, f->wall_ns));
	if (is_partly_outside(f))
		text__add(s,
			  ";" CLAUSE
			  "for %.0f%% of the time within this function, for %.0f%% elsewhere, such as after sleeps",
			  table__percent(f->in_code_ns, f->wall_ns),
			  table__percent(f->lost_ns - f->in_code_ns, f->wall_ns));
	if (*f->detail)
		text__add(s, ";" CLAUSE "%s", f->detail);
	add_counterpart(s, f, q);
}

/* Replaces CLAUSE by a space, and notes where the clauses begin. */
static void find_clauses(struct finding *f)
{
	f->n_clauses = 0;
	for (char *at = f->text; (at = strchr(at, *CLAUSE)) != NULL;) {
		*at++ = ' ';
		if (f->n_clauses < ARRAY_LEN(f->clauses))
			f->clauses[f->n_clauses++] = (u16)(at - f->text);
	}
}

void finding__write(struct finding *f, const struct query *q)
{
	struct text_buffer s = { .buf = f->text, .size = sizeof(f->text) };

	if (!finding__write_sentence(&s, f, q))
		add_wait(&s, f, q);
	if (f->confidence == FINDING_GUESSED)
		text__add(&s, " (a guess)");
	text__add(&s, ".");
	if (*f->advice)
		text__add(&s, CLAUSE "%s", f->advice);
	find_clauses(f);
}
