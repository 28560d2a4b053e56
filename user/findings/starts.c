// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/starts.h"

#include <errno.h>
#include <stdio.h>

#include "findings/group.h"
#include "model/names.h"
#include "output/text.h"
#include "util/map.h"

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

struct starts {
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
	}
	return 0;
}

static bool is_many(const struct lives *l, u32 per_second, const struct query *q)
{
	return (double)l->n > per_second * (double)query__duration(q) / 1e9;
}

static bool add(struct finding *f, const char *who, const struct lives *l, const char *what, u32 per_second,
		const struct query *q)
{
	char text[224], lived[64] = "";

	if (!is_many(l, per_second, q))
		return false;
	if (l->ended)
		snprintf(lived, sizeof(lived), ", which lived for %s each", TEXT_NS(l->ns / l->ended));
	snprintf(text, sizeof(text), "%s started %s %s, %.0f a second%s", who, TEXT_COUNT(l->n), what,
		 (double)l->n * 1e9 / (double)query__duration(q), lived);
	finding__add_detail(f, text);
	return true;
}

/* States what the process, or the one that started it, started; once for each. */
static void state(const struct starts *s, struct finding *f, const struct query *q)
{
	const struct start *start = map__find(&s->tasks, &(struct thread_key){ f->pid, f->pid });
	struct started *own = map__find(&s->started, &f->pid);
	struct started *parents = start ? map__find(&s->started, &start->pid) : NULL;
	char label[96];

	if (own && !own->is_stated) {
		own->is_stated = add(f, "it", &own->processes, "processes", PROCESSES_PER_SECOND, q);
		own->is_stated |= add(f, "it", &own->threads, "threads", THREADS_PER_SECOND, q);
	}
	if (parents && !parents->is_stated)
		parents->is_stated = add(f, names__label(q->names, label, sizeof(label), start->pid, 0),
					 &parents->processes, "processes", PROCESSES_PER_SECOND, q);
}

int starts__add(struct finding *list, u32 n, const struct query *q)
{
	struct query all = *q;
	struct starts s;
	int err;

	map__init(&s.started, sizeof(u32), sizeof(struct started));
	map__init(&s.tasks, sizeof(struct thread_key), sizeof(struct start));
	all.pids.n = all.tids.n = 0;
	err = query__read_kind(&all, "proc_fork", on_forks, &s);
	if (!err)
		err = query__read_kind(&all, "proc_exit", on_exits, &s);
	for (u32 i = 0; !err && i < n; i++)
		state(&s, &list[i], q);
	MAPS_FREE(&s.started, &s.tasks);
	return err;
}
