// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/starts.h"

#include <errno.h>
#include <stdio.h>

#include <string.h>

#include "findings/group.h"
#include "model/lock_kind.h"
#include "model/names.h"
#include "output/text.h"
#include "util/map.h"
#include "util/path.h"

/* Fewer a second are usual. */
#define PROCESSES_PER_SECOND 1
#define THREADS_PER_SECOND   20

/* What one process started */
struct started {
	struct lives {
		u64 n, ended, ns; /* ns: how long those lived that ended */
	} processes, threads;
	bool is_stated;
};

struct start {
	u64 time;
	u32 pid; /* of the process that made it */
};

/* What processes of one name, "date", a process started */
struct program {
	u32 pid;
	char name[20];
};

struct starts {
	const struct names *names;
	struct map programs; /* struct program -> u64 number */
	struct map started; /* u32 pid -> struct started */
	struct map tasks; /* struct thread_key -> struct start */
};

static int on_forks(const struct rows *rows, void *arg)
{
	struct starts *s = arg;

	ROWS_EACH(v, rows) {
		struct thread_key key = { (u32)view__get(&v, "child_pid"), (u32)view__get(&v, "child_tid") };
		u32 pid = (u32)view__get(&v, "pid");
		struct started *started = map__get(&s->started, &pid);
		struct start *start = map__get(&s->tasks, &key);

		if (!started || !start)
			return -ENOMEM;
		*start = (struct start){ (u64)view__get(&v, "time"), pid };
		if (key.pid == pid)
			started->threads.n++;
		else
			started->processes.n++;
	}
	return 0;
}

static int add_program(struct starts *s, u32 parent, u32 pid)
{
	const char *name = names__comm(s->names, pid, 0), *own = names__comm(s->names, parent, 0);
	struct program program = { .pid = parent };
	u64 *n;

	/* a name that it has from its parent says nothing */
	if (!name || (own && !strcmp(name, own)))
		return 0;
	snprintf(program.name, sizeof(program.name), "%s", name);
	n = map__get(&s->programs, &program);
	if (!n)
		return -ENOMEM;
	++*n;
	return 0;
}

static int on_exits(const struct rows *rows, void *arg)
{
	struct starts *s = arg;

	ROWS_EACH(v, rows) {
		struct thread_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "tid") };
		const struct start *start = map__find(&s->tasks, &key);
		struct started *started = start ? map__find(&s->started, &start->pid) : NULL;
		struct lives *lives = !started ? NULL : key.pid == start->pid ? &started->threads : &started->processes;

		if (!lives || (u64)view__get(&v, "time") < start->time)
			continue;
		lives->ended++;
		lives->ns += (u64)view__get(&v, "time") - start->time;
		if (key.pid != start->pid && key.pid == key.tid && add_program(s, start->pid, key.pid))
			return -ENOMEM;
	}
	return 0;
}

/* Programs that are this part of all that a process started are named, at most so many. */
#define PROGRAM_PART 5
#define PROGRAMS_MAX 3

/* Appends " (mostly date and cut)". */
static void add_programs(const struct starts *s, u32 parent, u64 all, struct text_buffer *text)
{
	const struct program *named[PROGRAMS_MAX] = { NULL };
	u32 n = 0;

	MAP_EACH_ENTRY(const u64 *times, const struct program *program, &s->programs)
		if (n < PROGRAMS_MAX && program->pid == parent && PROGRAM_PART * *times >= all)
			named[n++] = program;
	for (u32 i = 0; i < n; i++)
		text__add(text, "%s%s", !i ? " (mostly " : i == n - 1 ? " and " : ", ", named[i]->name);
	text__add(text, n ? ")" : "");
}

static bool is_many(const struct lives *l, u32 per_second, const struct query *q)
{
	return (double)l->n > per_second * (double)query__duration(q) / 1e9;
}

struct line_key {
	u32 code, line;
};

/* Time in which a line started threads */
struct line_sum {
	u64 ns;
	u32 frame;
};

/* Adds the time of a stack to the line that starts a thread in it, if one does. */
static void add_stack(struct map *lines, const struct stacks *stacks, u32 stack, u64 ns)
{
	const struct stack_frame *f, *code = NULL;
	struct line_sum *sum = NULL;
	u32 frame = 0;

	for (u32 at = stack; !frame && (f = stacks__frame(stacks, at)) != NULL; at = f->caller)
		if (f->kind == FRAME_PYTHON ?
			    path__ends_with(f->file, "/threading.py") && path__ends_with(f->symbol, "start") :
			    path__begins_with(f->symbol, "pthread_create"))
			frame = lock_kind__code(stacks, at);
	code = stacks__frame(stacks, frame);
	if (code && code->line && !stack_frame__is_library(code))
		sum = map__get(lines, &(struct line_key){ code->code, code->line });
	if (!sum)
		return;
	sum->ns += ns;
	sum->frame = frame;
}

/* Fills code with the line that starts most of the process's threads, by samples and waits; none: leaves it empty. */
static void find_line(const struct finding_input *in, u32 pid, struct finding_code *code)
{
	const struct line_sum *most = NULL;
	struct map lines;
	u64 all = 0;

	map__init(&lines, sizeof(struct line_key), sizeof(struct line_sum));
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples)
		if (key->thread.pid == pid)
			add_stack(&lines, in->stacks, key->stack, s->ns);
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells)
		if (key->thread.pid == pid)
			add_stack(&lines, in->stacks, key->stack, cell->ns);
	MAP_EACH(const struct line_sum *sum, &lines) {
		all += sum->ns;
		most = most && most->ns >= sum->ns ? most : sum;
	}
	if (most && 2 * most->ns > all)
		finding_code__fill(code, in->stacks, most->frame);
	map__free(&lines);
}

/* What is added about processes or threads: who started them, what they are, and how many a second are many. */
struct statement {
	const char *who, *what;
	const struct lives *lives;
	u32 per_second;
	u32 starter; /* pid; of processes, 0: of threads */
	const struct finding_code *code; /* the code that started them, NULL: not known */
};

static bool add(const struct starts *starts, struct finding *f, const struct statement *st, const struct query *q)
{
	const struct lives *l = st->lives;
	char text[512];
	struct text_buffer s = { .buf = text, .size = sizeof(text) };

	if (!is_many(l, st->per_second, q))
		return false;
	text__add(&s, "%s started %s %s", st->who, TEXT_COUNT(l->n), st->what);
	if (st->starter)
		add_programs(starts, st->starter, l->n, &s);
	if (st->code)
		finding_code__add(&s, " in ", st->code);
	text__add(&s, ", %.0f a second", (double)l->n * 1e9 / (double)query__duration(q));
	if (l->ended)
		text__add(&s, ", which lived for %s each", TEXT_NS(l->ns / l->ended));
	finding__add_detail(f, text);
	return true;
}

/* States what the process, or the one that started it, started; once for each. */
static void state(const struct finding_input *in, const struct starts *s, struct finding *f)
{
	const struct start *start = map__find(&s->tasks, &(struct thread_key){ f->pid, f->pid });
	struct started *own = map__find(&s->started, &f->pid);
	struct started *parents = start ? map__find(&s->started, &start->pid) : NULL;
	struct finding_code code = { 0 };
	char label[96];

	if (own && !own->is_stated) {
		if (is_many(&own->threads, THREADS_PER_SECOND, in->q))
			find_line(in, f->pid, &code);
		own->is_stated = add(s, f,
				     &(struct statement){ "it", "processes", &own->processes, PROCESSES_PER_SECOND,
							  f->pid, NULL },
				     in->q);
		own->is_stated |=
			add(s, f, &(struct statement){ "it", "threads", &own->threads, THREADS_PER_SECOND, 0, &code },
			    in->q);
	}
	if (parents && !parents->is_stated) {
		names__label(in->q->names, label, sizeof(label), start->pid, 0);
		parents->is_stated = add(s, f,
					 &(struct statement){ label, "processes", &parents->processes,
							      PROCESSES_PER_SECOND, start->pid, NULL },
					 in->q);
	}
}

int starts__add(const struct finding_input *in, struct finding *list, u32 n)
{
	struct query all = *in->q;
	struct starts s = { .names = in->q->names };
	int err;

	map__init(&s.programs, sizeof(struct program), sizeof(u64));
	map__init(&s.started, sizeof(u32), sizeof(struct started));
	map__init(&s.tasks, sizeof(struct thread_key), sizeof(struct start));
	all.pids.n = all.tids.n = 0;
	err = query__read_kind(&all, "proc_fork", on_forks, &s);
	if (!err)
		err = query__read_kind(&all, "proc_exit", on_exits, &s);
	for (u32 i = 0; !err && i < n; i++)
		state(in, &s, &list[i]);
	MAPS_FREE(&s.programs, &s.started, &s.tasks);
	return err;
}
