// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/tasks.h"

#include "attach/task_reader.h"
#include "probes/gil/gil.h"
#include "probes/proc/proc.h"
#include "record/parts.h"
#include "record/stacks/native.h"
#include "record/stacks/stacks.h"
#include "sandbox/message.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Readings are this far apart, and further if they take long: they use at most a two-hundredth of a CPU. Those of more
 * than so many processes are further apart in proportion.
 */
#define INTERVAL_NS 100000000ULL
#define COST_PART   200
#define SHARES	    16
/* The same for the readings of threads' names; those of all processes use a two-hundredth. The first one is later. */
#define NAMES_NS       250000000ULL
#define NAMES_FIRST_NS 150000000ULL
/* A process without tasks is read less often, and after so many readings another process may take its entry. */
#define EMPTY_NS  1000000000ULL
#define EMPTY_MAX 10
#define ANSWER_NS 8000000000ULL
/* After this time a child whose socket was closed has ended, so that another one can be started. */
#define RENEW_NS     200000000ULL
#define RENEWALS_MAX 8
/*
 * A child that ended, such as at its limit of CPU time, is replaced after this time, and after twice the time whenever
 * the one before did not run for long. So compromised children use little CPU time.
 */
#define RESTART_NS    1000000000ULL
#define DOUBLINGS_MAX 9
#define LONG_NS	      1000000000000ULL

struct task_process {
	u32 pid; /* 0: a free entry */
	int sock; /* -1: no child runs */
	bool has_loop; /* its tasks are read, not only names of threads */
	u64 started; /* ns: when the last child was started */
	u32 doublings; /* of the time until the next child is started */
	u32 renewals; /* of a child that found no tasks */
	u64 requested; /* ns: time of the request that is not answered yet; 0: none */
	u8 request; /* enum task_reading */
	u32 n_names; /* of names, GILs and programs in its answer, so far */
	u64 last; /* ns: time of the last reading of tasks; 0: none */
	u64 next, next_names; /* ns: of the next requests */
	u32 empty; /* readings without tasks since the last one with tasks */
	struct stack_function *functions; /* by number, from 1 on */
	u32 n_functions;
	struct tasks_message *groups; /* of the reading that arrives */
	u32 n_groups;
};

struct task_samples {
	struct task_process list[TASK_READERS_MAX];
};

bool tasks__is_event_loop(const u8 *path, u32 len)
{
	static const char *const files[] = { "/asyncio/base_events.py", "/asyncio/runners.py", "/uvloop/__init__.py" };

	for (u32 i = 0; i < ARRAY_LEN(files); i++) {
		size_t n = strlen(files[i]);

		if (len >= n && !memcmp(path + len - n, files[i], n))
			return true;
	}
	return false;
}

static void end_reader(struct task_process *p)
{
	if (p->sock >= 0)
		close(p->sock);
	free(p->functions);
	free(p->groups);
	*p = (struct task_process){ .sock = -1 };
}

/* Ends the child, and lets a later one read the process, unless that is of no use. */
static void on_error(struct session *s, struct task_process *p, int err, u64 now)
{
	struct task_process next = {
		.pid = p->pid,
		.has_loop = p->has_loop,
		.sock = -1,
		.started = p->started,
		.doublings = p->doublings,
	};

	end_reader(p);
	if (err == -ENOTSUP)
		session__warn_of(s, session__user(s, next.pid),
				 "process %u: its asyncio tasks are not recorded: " TASKS_UNKNOWN, next.pid);
	if (err == -ENOTSUP || err == -ENOEXEC || session__has_ended(next.pid))
		return;
	/* -ESRCH: the process executes another program, or is about to end; -EAGAIN: its interpreter is not ready */
	if (err != -ESRCH && err != -EAGAIN && next.has_loop)
		session__lost(s, "sample", LOSS_READ, 1);
	if (now - next.started > LONG_NS)
		next.doublings = 0;
	next.next = next.next_names = now + (RESTART_NS << next.doublings);
	next.doublings += next.doublings < DOUBLINGS_MAX;
	*p = next;
}

void task_samples__free(struct task_samples *t)
{
	for (u32 i = 0; t && i < TASK_READERS_MAX; i++)
		if (t->list[i].pid)
			end_reader(&t->list[i]);
	free(t);
}

/* The family that records tasks; NULL: none does in this recording. */
static const struct family_host *host_of(struct session *s)
{
	for (u32 i = 0; i < FAMILY_MAX; i++)
		if (hosts__of(s, i) && hosts__of(s, i)->tasks && family_host__follows(s, hosts__of(s, i)))
			return hosts__of(s, i);
	return NULL;
}

/* Returns the process's entry, which may be a new one in place of one of less use; NULL: all are of use. */
static struct task_process *entry_of(struct session *s, u32 pid, bool has_loop)
{
	struct task_process *unused = NULL;

	if (!s->tasks)
		s->tasks = calloc(1, sizeof(*s->tasks));
	for (u32 i = 0; s->tasks && i < TASK_READERS_MAX; i++) {
		struct task_process *p = &s->tasks->list[i];

		if (p->pid == pid)
			return p;
		if (!p->pid || (!unused && has_loop && (!p->has_loop || p->empty >= EMPTY_MAX)))
			unused = p;
	}
	if (unused && unused->pid)
		end_reader(unused);
	if (unused)
		*unused =
			(struct task_process){ .pid = pid, .sock = -1, .next_names = session__now(s) + NAMES_FIRST_NS };
	return unused;
}

/*
 * Replaces the child, which may have examined the files before that of module _asyncio was mapped: a function of a loop
 * is seen again afterwards, or the file is seen.
 */
static void renew_reader(struct session *s, struct task_process *p)
{
	struct task_process next = { .pid = p->pid, .has_loop = true, .sock = -1, .renewals = p->renewals + 1 };

	end_reader(p);
	next.next = next.next_names = session__now(s) + RENEW_NS;
	*p = next;
}

void tasks__found(struct session *s, u32 pid)
{
	struct task_process *p;

	if (!host_of(s) || !session__selects(s, pid))
		return;
	p = entry_of(s, pid, true);
	if (!p) {
		session__lost(s, "sample", LOSS_BUDGET, 1);
		return;
	}
	p->has_loop = true;
	if (p->sock >= 0 && !p->n_functions && p->renewals < RENEWALS_MAX)
		renew_reader(s, p);
}

void tasks__runs_python(struct session *s, u32 pid)
{
	if (session__selects(s, pid))
		entry_of(s, pid, false);
}

void tasks__mapped(struct session *s, const struct mapping *m)
{
	/* -p may name more processes than can be read */
	if (strstr(m->path, "/uvloop/loop.") ||
	    (strstr(m->path, "/_asyncio.") && s->args->n_pids <= TASK_READERS_MAX && targets__have(s, m->pid)))
		tasks__found(s, m->pid);
}

/* Adds a function, whose texts the child may have left without an end. */
static bool on_function(struct session *s, struct task_process *p, struct tasks_function *f)
{
	f->name[sizeof(f->name) - 1] = f->file[sizeof(f->file) - 1] = '\0';
	if (f->number != p->n_functions + 1 || f->number > TASK_FUNCTIONS_MAX)
		return false;
	return array__push(p->functions, p->n_functions, stack_records__function(s, p->pid, f->name, f->file, f->line));
}

/* Returns the id of a stack in the trace; 0: it has no frames, or no id is left for one of them. */
static u32 stack_of(struct session *s, const struct task_process *p, const struct tasks_stack *from)
{
	struct native *native = native__of(s);
	u32 id = 0;

	for (u32 i = from->n; i-- > 0 && native;) {
		u32 number = from->frames[i].function, line = from->frames[i].line;

		if (!number || number > p->n_functions)
			return 0;
		stack_records__line(s, &p->functions[number - 1], line);
		id = native__coroutine(native, id, p->functions[number - 1].id, line);
		if (!id) {
			session__lost(s, "sample", LOSS_MAP_FULL, 1);
			return 0;
		}
	}
	return id;
}

static void write_groups(struct session *s, const struct task_process *p, const struct tasks_end *end, u64 time)
{
	const struct family_host *host = host_of(s);

	for (u32 i = 0; i < p->n_groups && host; i++) {
		const struct tasks_group *g = &p->groups[i].group;
		struct task_waits w = {
			.pid = p->pid,
			.time = time,
			.period = time - p->last,
			.object = g->object,
			.stack = stack_of(s, p, &g->stack),
			.holder = stack_of(s, p, &g->holder),
			.last = stack_of(s, p, &g->last),
			.peer_high = g->peer.high,
			.peer_low = g->peer.low,
			.peer_port = g->peer.port,
			.tasks = g->tasks,
			.begun = g->begun,
			.all = end->all,
			.serves = g->serves != 0,
		};

		host->tasks(s, &w);
	}
	if (end->more)
		session__lost(s, "sample", LOSS_BUDGET, 1);
}

static bool on_name(struct session *s, struct task_process *p, struct tasks_name *name)
{
	const struct family_host *host = hosts__of(s, EVENT_FAMILY(ID_proc_name));

	name->text[sizeof(name->text) - 1] = '\0';
	if (!(p->request & READ_NAMES) || p->n_names++ == THREAD_NAMES_MAX)
		return false;
	if (host && host->thread_name)
		host->thread_name(s, p->pid, name->own_tid, name->text);
	return true;
}

static bool on_gil(struct session *s, struct task_process *p, const struct tasks_gil *gil)
{
	const struct family_host *host = hosts__of(s, EVENT_FAMILY(ID_gil_owner));

	if (!(p->request & READ_NAMES) || p->n_names++ == THREAD_NAMES_MAX)
		return false;
	if (host && host->python_gil)
		host->python_gil(s, p->pid, gil->address, gil->interpreter);
	return true;
}

static bool on_program(struct session *s, struct task_process *p, struct python_program *program)
{
	const struct family_host *host = hosts__of(s, EVENT_FAMILY(ID_proc_python));

	program->library[sizeof(program->library) - 1] = program->script[sizeof(program->script) - 1] = '\0';
	if (!(p->request & READ_NAMES) || p->n_names++ == THREAD_NAMES_MAX)
		return false;
	if (host && host->python_program)
		host->python_program(s, p->pid, program);
	return true;
}

static u64 number_of(const struct task_samples *t)
{
	u64 n = 0;

	for (u32 i = 0; i < TASK_READERS_MAX; i++)
		n += t->list[i].pid != 0;
	return n;
}

/* An answer with tasks, or with the error that there are none. */
static void on_tasks(struct session *s, struct task_process *p, const struct tasks_end *end, u64 cost)
{
	u64 time = p->requested + (end->delay_ns < INTERVAL_NS ? end->delay_ns : INTERVAL_NS);
	u64 pause = COST_PART * cost * (1 + number_of(s->tasks) / SHARES);
	u64 interval = end->error ? EMPTY_NS : INTERVAL_NS;

	/*
	 * The first reading has no predecessor, and its period is not known. A reading that was requested before a
	 * pause may be in it, and be answered after it; one that may have been before such a short pause counts as
	 * well.
	 */
	if (!end->error && p->last && time > p->last && !suspension__was_on(&s->suspension, time))
		write_groups(s, p, end, time);
	p->next = p->requested + (pause > interval ? pause : interval);
	p->last = end->error ? 0 : time;
	p->empty = end->error ? p->empty + 1 : 0;
}

static int on_end(struct session *s, struct task_process *p, const struct tasks_end *end)
{
	u64 cost = end->cost_ns < EMPTY_NS ? end->cost_ns : EMPTY_NS, pause = COST_PART * cost * number_of(s->tasks);

	if (end->error && end->error != -ENOENT)
		return end->error < 0 ? end->error : -EPROTO;
	if (p->request & READ_TASKS)
		on_tasks(s, p, end, cost);
	if (p->request & READ_NAMES)
		p->next_names = p->requested + (pause > NAMES_NS ? pause : NAMES_NS);
	p->requested = 0;
	p->n_groups = p->n_names = 0;
	return 0;
}

/* Handles a message of the child, which the process may have compromised. Returns 0 or negative errno. */
static int on_message(struct session *s, struct task_process *p, struct tasks_message *m)
{
	bool valid = false;

	if (!p->requested)
		return -EPROTO;
	switch (m->kind) {
	case TASKS_FUNCTION:
		valid = on_function(s, p, &m->function);
		break;
	case TASKS_GROUP:
		valid = p->n_groups < TASK_GROUPS_MAX && m->group.stack.n <= TASK_FRAMES_MAX &&
			m->group.holder.n <= TASK_FRAMES_MAX && m->group.last.n <= TASK_FRAMES_MAX &&
			array__push(p->groups, p->n_groups, *m);
		break;
	case TASKS_NAME:
		valid = on_name(s, p, &m->name);
		break;
	case TASKS_GIL:
		valid = on_gil(s, p, &m->gil);
		break;
	case TASKS_PROGRAM:
		valid = on_program(s, p, &m->program);
		break;
	case TASKS_END:
		return on_end(s, p, &m->end);
	}
	return valid ? 0 : -EPROTO;
}

/* A reading has at most so many messages. */
#define MESSAGES_MAX (TASK_FUNCTIONS_MAX + TASK_GROUPS_MAX + THREAD_NAMES_MAX + 1)

static int receive_reading(struct session *s, struct task_process *p)
{
	struct tasks_message m;
	int fd, err = 0;

	for (u32 i = 0; i < MESSAGES_MAX && !err && message__pending(p->sock); i++) {
		ssize_t n = message__receive(p->sock, &m, sizeof(m), &fd);

		if (fd >= 0)
			close(fd);
		err = n == sizeof(m) ? on_message(s, p, &m) : -EPROTO;
	}
	return err;
}

static int request_reading(struct session *s, struct task_process *p, u8 request, u64 now)
{
	if (p->sock < 0) {
		p->started = now;
		p->sock = attacher__tasks(s->attacher, p->pid);
	}
	p->requested = now;
	p->request = request;
	return p->sock < 0 ? p->sock : message__send_now(p->sock, &request, sizeof(request), -1);
}

/* Returns 0, or negative errno if the child can't be used any more. */
static int tick_process(struct session *s, struct task_process *p, u64 now)
{
	int err = p->sock >= 0 ? receive_reading(s, p) : 0;
	u8 request;

	if (err)
		return err;
	if (p->requested)
		return now - p->requested < ANSWER_NS ? 0 : -ETIMEDOUT;
	request = (p->has_loop && now >= p->next ? READ_TASKS : 0) | (now >= p->next_names ? READ_NAMES : 0);
	return !request || suspension__is_on(&s->suspension) ? 0 : request_reading(s, p, request, now);
}

void tasks__tick(struct session *s, u64 now)
{
	int err;

	for (u32 i = 0; s->tasks && i < TASK_READERS_MAX; i++) {
		struct task_process *p = &s->tasks->list[i];

		if (!p->pid)
			continue;
		err = session__has_ended(p->pid) ? -ESRCH : tick_process(s, p, now);
		if (err)
			on_error(s, p, err, now);
	}
}
