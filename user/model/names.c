// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/names_private.h"

#include "util/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_AHEAD 1000000 /* ns */
/* A program that was traced for less, such as env, counts with the one that it executes. */
#define PROGRAM_MIN 100000000 /* ns */

int names__create(struct names **out, const struct schema *s)
{
	struct names *n = calloc(1, sizeof(*n));

	*out = NULL;
	if (!n)
		return -ENOMEM;
	n->schema = s;
	map__init(&n->inner, sizeof(struct task_key), sizeof(u32));
	map__init(&n->tasks, sizeof(struct task_key), sizeof(struct named_task));
	map__init(&n->probes, sizeof(u16), sizeof(struct named_probe));
	recent_texts__init(&n->strings, sizeof(u32));
	recent_texts__init(&n->peers, sizeof(u32));
	recent_texts__init(&n->titles, sizeof(u32));
	recent_texts__init(&n->texts, sizeof(struct kernel_key));
	recent_texts__init(&n->torch, sizeof(struct kernel_key));
	map__init(&n->gils, sizeof(struct kernel_key), sizeof(struct named_gil));
	map__init(&n->instances, sizeof(u32), sizeof(struct named_task *));
	*out = n;
	return 0;
}

void names__free(struct names *n)
{
	u32 i;

	if (!n)
		return;
	for (i = 0; i < n->probes.n; i++)
		free(((struct named_probe *)map__value(&n->probes, i))->text);
	map__free(&n->inner);
	map__free(&n->tasks);
	free(n->earlier);
	map__free(&n->probes);
	recent__free(&n->strings.table);
	recent__free(&n->peers.table);
	recent__free(&n->titles.table);
	recent__free(&n->texts.table);
	recent__free(&n->torch.table);
	map__free(&n->gils);
	map__free(&n->instances);
	if (n->trace)
		trace__set_tasks(n->trace, NULL, 0);
	free(n->numbering);
	free(n);
}

/* Returns room for an earlier task of a reused number; NULL: no memory. */
static struct named_task *add_earlier(struct names *n)
{
	if (!array__room(n->earlier, n->n_earlier))
		return NULL;
	return &n->earlier[n->n_earlier++];
}

/* Returns the task that had its number at `time`, as far as starts are known. last: the last task with the number. */
static const struct named_task *task_at(const struct names *n, const struct named_task *last, u64 time)
{
	while (last && last->task.start > time && last->previous)
		last = &n->earlier[last->previous - 1];
	return last;
}

static struct named_task *names__get_task(struct names *n, u32 pid, u32 tid, u64 time)
{
	struct task_key key = { pid, tid };
	struct named_task *t;

	names__bound_tasks(n);
	t = map__get(&n->tasks, &key);
	if (!t)
		return NULL;
	if (!t->first_fed)
		t->first_fed = time;
	t->task.pid = pid;
	t->task.tid = tid;
	return (struct named_task *)task_at(n, t, time);
}

/* Called when a task begins. Another task may have had its pid, and later events of this task may have been fed. */
static struct named_task *names__begin_task(struct names *n, u32 pid, u32 tid, u64 time)
{
	struct task_key key = { pid, tid };
	struct named_task *last, *old;
	bool fresh;

	names__bound_tasks(n);
	last = map__get(&n->tasks, &key);
	if (!last)
		return NULL;
	fresh = !last->first_fed;
	/*
	 * It is the same task, known from events fed before: this is its exec, or a snapshot, which may list it before
	 * its parent's fork event.
	 */
	if (fresh || last->task.start == time ||
	    (!last->task.start && !last->task.end && last->first_fed + SNAPSHOT_AHEAD >= time)) {
		last->first_fed = fresh ? time : last->first_fed;
		last->task.pid = pid;
		last->task.tid = tid;
		return last;
	}
	/* a recording needs only the last task of a number */
	old = n->trace ? add_earlier(n) : &n->unstored;
	if (!old)
		return NULL;
	if (last->task.start > time) {
		*old = (struct named_task){ .task = { .pid = pid, .tid = tid },
					    .first_fed = time,
					    .previous = last->previous };
		last->previous = n->n_earlier; /* 0: none is stored */
		return old;
	}
	*old = *last;
	*last = (struct named_task){ .task = { .pid = pid, .tid = tid }, .first_fed = time, .previous = n->n_earlier };
	return last;
}

/*
 * Called when a process executes another program. A process has an id for each program that it runs, as processes with
 * the same pid have.
 */
static struct named_task *begin_program(struct names *n, u32 pid, u64 time)
{
	struct named_task *t = names__get_task(n, pid, pid, time), *next;
	u64 since = !t ? 0 : t->task.start ? t->task.start : t->first_fed;
	struct task task;

	since = since < n->live ? n->live : since;
	/* a recording needs only the last program */
	if (!t || !n->trace || time <= since + PROGRAM_MIN)
		return t;
	task = t->task;
	t->task.end = time;
	t->is_replaced = true;
	next = names__begin_task(n, pid, pid, time);
	if (!next)
		return NULL;
	next->task.start = time;
	next->task.ppid = task.ppid;
	next->task.ns_pid = task.ns_pid;
	return next;
}

static void task__set_name(struct named_task *t, u64 time, const char *comm, u32 len)
{
	if (!len || time < t->named)
		return;
	t->named = time;
	len = len < sizeof(t->task.comm) ? len : sizeof(t->task.comm);
	memset(t->name, 0, sizeof(t->name));
	memcpy(t->name, comm, len);
	memcpy(t->task.comm, t->name, sizeof(t->task.comm));
}

static void task__set_comm(struct named_task *t, const struct view *v)
{
	u32 len;
	const char *comm = view__text(v, schema_event__field(v->event, "comm"), &len);

	task__set_name(t, (u64)view__get(v, "time"), comm, len);
}

static int note_inner(struct names *n, u32 pid, u32 tid, u32 ns_tid)
{
	u32 *number;

	/* a recording needs no numbers of locks' owners */
	if (!n->trace || !ns_tid || ns_tid == tid)
		return 0;
	number = map__get(&n->inner, &(struct task_key){ pid, ns_tid });
	if (!number)
		return -ENOMEM;
	*number = tid;
	return 0;
}

static int feed_fork(struct names *n, const struct view *v)
{
	u32 pid = (u32)view__get(v, "child_pid"), tid = (u32)view__get(v, "child_tid");
	const char *parent = names__comm(n, (u32)view__get(v, "pid"), (u32)view__get(v, "tid"));
	struct named_task *t;
	char comm[17] = "";

	/* a copy, because the child may reuse the parent's entry */
	if (parent)
		snprintf(comm, sizeof(comm), "%s", parent);
	t = names__begin_task(n, pid, tid ? tid : pid, (u64)view__get(v, "time"));
	if (!t)
		return -ENOMEM;
	t->task.start = (u64)view__get(v, "time");
	t->task.ns_pid = (u32)view__get(v, "child_ns_pid");
	if (note_inner(n, pid, tid, (u32)view__get(v, "child_ns_tid")))
		return -ENOMEM;
	if (pid != (u32)view__get(v, "pid"))
		t->task.ppid = (u32)view__get(v, "pid");
	if (schema_event__field(v->event, "comm"))
		task__set_comm(t, v);
	else
		task__set_name(t, t->task.start, comm, (u32)strlen(comm));
	return 0;
}

static int feed_task(struct names *n, const struct view *v)
{
	const char *kind = v->event->name;
	u32 pid = (u32)view__get(v, "pid"), tid = (u32)view__get(v, "tid");
	u64 time = (u64)view__get(v, "time");
	struct named_task *t;

	if (!strcmp(kind, "proc_fork"))
		return feed_fork(n, v);
	t = strcmp(kind, "proc_exec") ? names__get_task(n, pid, tid, time) : begin_program(n, pid, time);
	if (!t)
		return -ENOMEM;
	if (!strcmp(kind, "proc_exit")) {
		t->task.end = time;
		return 0;
	}
	if (!strcmp(kind, "proc_rank")) {
		if (time >= t->ranked) {
			t->ranked = time;
			t->task.rank = (u32)view__get(v, "rank");
			t->task.world_size = (u32)view__get(v, "world_size");
			t->task.host = (u32)view__get(v, "host");
		}
		return 0;
	}
	if (!strcmp(kind, "proc_image")) {
		/* one per program: the last one is that of the current program */
		if (time >= t->imaged) {
			t->imaged = time;
			t->task.exe = (u32)view__get(v, "exe");
			t->task.command = (u32)view__get(v, "command");
			t->task.container = (u32)view__get(v, "container");
			t->task.pod = (u32)view__get(v, "pod");
			t->task.cgroup = (u32)view__get(v, "cgroup");
			/* older traces do not have it */
			t->task.user = schema_event__field(v->event, "uid") ? (u32)view__get(v, "uid") + 1 : 0;
		}
		return 0;
	}
	/* the kernel gives a process the name of its next program a moment before that begins */
	if (t->is_replaced && t->task.end < time + PROGRAM_MIN)
		return 0;
	task__set_comm(t, v);
	/* the old image no longer applies, and the new program may end before its image is read */
	if (!strcmp(kind, "proc_exec") && time > t->imaged) {
		t->imaged = time;
		t->task.exe = t->task.command = t->task.script = 0;
	}
	/* the new program may have no rank */
	if (!strcmp(kind, "proc_exec") && time > t->ranked) {
		t->ranked = time;
		t->task.world_size = 0;
	}
	if (!strcmp(kind, "proc_task")) {
		t->task.ppid = (u32)view__get(v, "ppid");
		t->task.ns_pid = (u32)view__get(v, "ns_pid");
		return note_inner(n, pid, tid, (u32)view__get(v, "ns_tid"));
	}
	return 0;
}

static int feed_peer(struct names *n, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid"), len;
	const char *comm = view__text(v, schema_event__field(v->event, "comm"), &len);

	return recent_texts__set(&n->peers, &pid, comm, (u32)strnlen(comm, len));
}

/*
 * What the memory of a Python process has. A thread is named by its tid there, so it may be any number: one that is not
 * known stays so.
 */
static int feed_python(struct names *n, const struct view *v)
{
	struct task_key key = { (u32)view__get(v, "pid"), (u32)view__get(v, "tid") };
	u64 time = (u64)view__get(v, "time");
	struct named_task *t = (struct named_task *)task_at(n, map__find(&n->tasks, &key), time);

	if (!t || time < t->python_named)
		return 0;
	t->python_named = time;
	/* after an exec it is another program's */
	if (schema_event__field(v->event, "script"))
		t->task.script = time < t->imaged ? 0 : (u32)view__get(v, "script");
	else
		t->task.python = (u32)view__get(v, "name");
	return 0;
}

static int feed_gil(struct names *n, const struct view *v)
{
	struct kernel_key key = { (u64)view__get(v, "gil"), (u64)view__get(v, "pid") };
	u64 interpreter = (u64)view__get(v, "interpreter");
	struct named_gil *g = map__get(&n->gils, &key);

	if (!g)
		return -ENOMEM;
	g->has_several |= g->is_known && g->interpreter != interpreter;
	g->interpreter = interpreter;
	g->is_known = true;
	return 0;
}

static int feed_probe(struct names *n, const struct view *v)
{
	u16 number = (u16)view__get(v, "number");
	struct named_probe *p = map__get(&n->probes, &number);

	if (!p)
		return -ENOMEM;
	p->string = (u32)view__get(v, "name");
	free(p->text);
	p->text = n->trace ? NULL : strdup(names__string(n, p->string));
	return n->trace || p->text ? 0 : -ENOMEM;
}

int names__feed(struct names *n, const struct view *v)
{
	const char *kind = v->event->name;
	struct kernel_key key;
	u32 id;

	if (!strcmp(kind, "meta_string")) {
		id = (u32)view__get(v, "string");
		return recent_texts__feed(&n->strings, &id, v);
	}
	if (!strcmp(kind, "gpu_name") || !strcmp(kind, "nvtx_text") || !strcmp(kind, "functions_text")) {
		key = (struct kernel_key){ (u64)view__get(v, *kind == 'g' ? "name" : "number"),
					   (u64)view__get(v, "pid") };
		return recent_texts__feed(&n->texts, &key, v);
	}
	if (!strcmp(kind, "gil_owner"))
		return n->trace ? feed_gil(n, v) : 0;
	if (!strcmp(kind, "meta_probe"))
		return feed_probe(n, v);
	if (!strcmp(kind, "syscall_peer"))
		return feed_peer(n, v);
	if (!strcmp(kind, "syscall_title")) {
		id = (u32)view__get(v, "pid");
		return recent_texts__feed(&n->titles, &id, v);
	}
	if (!strcmp(kind, "torch_operator") || !strcmp(kind, "torch_class"))
		return names__feed_torch(n, v);
	if (!strcmp(kind, "proc_task") || !strcmp(kind, "proc_fork") || !strcmp(kind, "proc_exec") ||
	    !strcmp(kind, "proc_exit") || !strcmp(kind, "proc_rename") || !strcmp(kind, "proc_image") ||
	    !strcmp(kind, "proc_rank"))
		return feed_task(n, v);
	if (!strcmp(kind, "proc_name") || !strcmp(kind, "proc_python"))
		return feed_python(n, v);
	return 0;
}

static int on_rows(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = names__feed(arg, &v);
	return err;
}

/* Sets n->live to when all that the recording found at its start was attached. */
static int on_costs(const struct rows *rows, void *arg)
{
	struct names *n = arg;

	ROWS_EACH(v, rows) {
		u64 live = (u64)view__get(&v, "time") - (u64)view__get(&v, "wall");

		n->live = !n->live || live < n->live ? live : n->live;
	}
	return 0;
}

/* Feeds the events of these kinds, a list that ends with NULL. */
static int read_kinds(struct names *n, const char *const *kinds)
{
	const struct schema_event *selected[16] = { 0 };
	struct trace_filter filter = { .kinds = selected };
	u32 found = 0;

	for (; *kinds; kinds++) {
		selected[found] = schema__event(n->schema, *kinds);
		found += !!selected[found];
	}
	return found ? trace__read(n->trace, &filter, on_rows, n) : 0;
}

int names__load(struct names *n, struct trace *t)
{
	/* which processes and programs there are is read before what is known of them */
	static const char *const lives[] = { "proc_task", "proc_fork", "proc_exec", "proc_exit", NULL };
	static const char *const kinds[] = { "meta_probe",    "proc_rename",	"proc_image",  "proc_rank",
					     "proc_name",     "proc_python",	"gil_owner",   "gpu_name",
					     "nvtx_text",     "functions_text", "torch_class", "syscall_peer",
					     "syscall_title", "torch_operator", NULL };
	int err;

	n->trace = t;
	n->texts.table.max = n->torch.table.max = n->peers.table.max = n->titles.table.max = ~0U;
	err = trace__read_kind(t, "meta_cost", on_costs, n);
	if (!err)
		err = read_kinds(n, lives);
	if (!err)
		err = read_kinds(n, kinds);
	return err ? err : names__distinguish(n);
}

const char *names__string(const struct names *n, u32 id)
{
	/* a text is sent once, so its use is marked; callers do not see this */
	const char *text = n->trace ? trace__string(n->trace, id) :
				      recent_texts__use((struct recent_texts *)&n->strings, &id);

	return text ? text : "";
}

const char *names__text(const struct names *n, u32 pid, u64 number)
{
	struct kernel_key key = { number, names__number(n, pid) };

	/* each text is sent once, so its use is marked; callers do not see this */
	return recent_texts__use((struct recent_texts *)&n->texts, &key);
}

const char *names__text_of(const struct names *n, const struct view *v, const struct schema_field *f)
{
	bool is_text = !strcmp(f->unit, "text") || (!strcmp(f->name, "name") && !strcmp(v->event->name, "gpu_kernel"));

	if (!is_text || !recent__entries(&n->texts.table))
		return NULL;
	return names__text(n, (u32)view__get(v, "pid"), (u64)view__s64(v, f));
}

bool names__interpreter(const struct names *n, u32 pid, u64 gil, u64 *interpreter)
{
	struct kernel_key key = { gil, names__number(n, pid) };
	const struct named_gil *g = map__find(&n->gils, &key);

	if (!g || g->has_several)
		return false;
	*interpreter = g->interpreter;
	return true;
}

const char *names__probe(const struct names *n, u16 probe)
{
	const struct named_probe *p = map__find(&n->probes, &probe);
	const char *name = !p ? "" : p->text ? p->text : names__string(n, p->string);

	return *name ? name : NULL;
}

const struct task *names__task(const struct names *n, u32 pid, u32 tid)
{
	const struct named_task *t = names__find(n, pid, tid);

	return t ? &t->task : NULL;
}

u32 names__process_of(const struct names *n, u32 tid)
{
	MAP_EACH(const struct named_task *t, &n->tasks)
		if (t->task.id == tid || (!t->task.id && t->task.tid == tid))
			return t->task.pid;
	return 0;
}

const struct task *names__process_at(const struct names *n, u32 pid, u64 time)
{
	struct task_key key = { pid, pid };
	const struct named_task *t = pid < TRACE_TASK_IDS ? task_at(n, map__find(&n->tasks, &key), time) :
							    names__find(n, pid, 0);

	return t ? &t->task : NULL;
}

const char *task__name(const struct task *t)
{
	const struct named_task *named = (const struct named_task *)t;

	return named->name[0] ? named->name : NULL;
}

const char *names__host(const struct names *n, const struct task *t, const char *recorded_on)
{
	return t->host ? names__string(n, t->host) : recorded_on;
}

bool names__is_default(const char *name)
{
	return !strncmp(name, "Thread-", 7) && isdigit((unsigned char)name[7]);
}

/* Has the program given the thread a name by prctl(), but none in Python? From 3.14 on Python itself calls prctl(). */
static bool is_outdone(const struct names *n, const struct named_task *t, const char *python)
{
	const struct named_task *process = names__find(n, t->task.pid, 0);

	return names__is_default(python) && t->name[0] && process && strcmp(t->name, process->name) != 0 &&
	       strncmp(t->name, python, strlen(t->name)) != 0;
}

const char *names__comm(const struct names *n, u32 pid, u32 tid)
{
	const struct named_task *t = names__find(n, pid, tid);
	const char *python = t && t->task.python ? names__string(n, t->task.python) : "";

	if (*python && !is_outdone(n, t, python))
		return python;
	if (!t || !t->name[0])
		t = names__find(n, pid, 0);
	return t && t->name[0] ? t->name : recent_texts__find(&n->peers, &(u32){ names__number(n, pid) });
}

u32 names__user(const struct names *n, u32 pid)
{
	const struct named_task *t = names__imaged(n, names__find(n, pid, 0));

	return t ? t->task.user : 0;
}

u32 names__thread_of(const struct names *n, u32 pid, u32 ns_tid)
{
	const u32 *tid = map__find(&n->inner, &(struct task_key){ names__number(n, pid), ns_tid });
	const struct task *t = names__task(n, pid, 0);

	if (tid || (t && t->ns_pid && t->ns_pid != t->pid))
		return tid ? *tid : 0;
	return names__find(n, pid, ns_tid) || !names__find(n, pid, 0) ? ns_tid : 0;
}

void names__container(const struct names *n, u32 pid, const char **container, const char **pod)
{
	names__container_of(n, names__task(n, pid, pid), container, pod);
}

const struct named_task *names__imaged(const struct names *n, const struct named_task *t)
{
	/* a damaged trace may hold a cycle */
	for (int i = 0; i < 64 && t && !t->imaged && t->task.ppid; i++)
		t = (const struct named_task *)names__process_at(n, t->task.ppid, t->task.start);
	return t;
}

void names__container_of(const struct names *n, const struct task *task, const char **container, const char **pod)
{
	const struct named_task *t = names__imaged(n, (const struct named_task *)task);

	*container = t ? names__string(n, t->task.container) : "";
	*pod = t ? names__string(n, t->task.pod) : "";
}

void names__each_process(const struct names *n, void (*fn)(const struct task *t, void *arg), void *arg)
{
	const struct named_task *t;
	u32 i, before;

	for (i = 0; i < n->tasks.n; i++) {
		t = map__value(&n->tasks, i);
		if (t->task.pid != t->task.tid)
			continue;
		for (before = t->previous; before; before = n->earlier[before - 1].previous)
			fn(&n->earlier[before - 1].task, arg);
		fn(&t->task, arg);
	}
}

char *names__label(const struct names *n, char *buf, size_t size, u32 pid, u32 tid)
{
	char room[64];
	/* room for a blank, the number and a NUL */
	size_t title_size = size - 12 < sizeof(room) ? size - 12 : sizeof(room);
	const char *title = names__title(n, room, title_size, pid, tid);

	snprintf(buf, size, "%s %u",
		 title		   ? title :
		 tid && tid != pid ? "thread" :
				     "process",
		 names__number(n, tid ? tid : pid));
	return buf;
}

const char *names__nvtx_label(const struct names *n, u32 pid, u64 domain, u64 name, char *buf, size_t size)
{
	const char *of = domain ? names__text(n, pid, domain) : NULL, *text = name ? names__text(n, pid, name) : NULL;

	snprintf(buf, size, "%s%s%s", of ? of : "", of ? ":" : "", text ? text : "(name not recorded)");
	return buf;
}

const char *names__nvtx(const struct names *n, const struct view *v, char *buf, size_t size)
{
	const char *kind = v->event->name;

	if (strcmp(kind, "nvtx_range") != 0 && strcmp(kind, "nvtx_mark") != 0 && strcmp(kind, "nvtx_counter") != 0 &&
	    strcmp(kind, "functions_call") != 0)
		return NULL;
	return names__nvtx_label(n, (u32)view__get(v, "pid"), (u64)view__get(v, "domain"), (u64)view__get(v, "name"),
				 buf, size);
}
