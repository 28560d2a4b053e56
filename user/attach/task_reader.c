// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/task_reader.h"

#include "process/mounts.h"
#include "python/names.h"
#include "sandbox/bounded.h"
#include "sandbox/message.h"
#include "sandbox/sandbox.h"
#include "util/map.h"
#include "util/priority.h"
#include "util/timing.h"
#include "util/utf8.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* After so many readings objects are read anew, as their addresses may be those of other objects by then. */
#define FORGET_EVERY 100
#define DELAY_NS     90000000
/* The kept names and lines of code objects are forgotten at the next reading when they have more bytes than this. */
#define CODE_BYTES_MAX (8 << 20)

struct reader {
	u32 pid;
	bool remote_files;
	struct snapshot snapshot;
	struct tasks tasks;
	struct map functions; /* struct tasks_function without its number -> number */
	struct python_program program; /* that was sent */
	struct map names; /* u32 own tid -> struct tasks_name that was sent */
	struct map gils; /* u64 address -> struct tasks_gil that was sent */
	int sock;
	u32 names_sent; /* and GILs, in this answer */
	bool failed; /* a message could not be sent */
	u32 readings;
	int error; /* the process can't be read; 0: it can */
	unsigned int random; /* state of the delays */
};

/* Opens what will be read, with the attacher's privileges. */
static bool prepare(void *arg)
{
	struct reader *r = arg;
	char err[512];
	int failed;

	priority__lower();
	prctl(PR_SET_NAME, "sonde-tasks");
	r->snapshot.remote_files = r->remote_files;
	failed = snapshot__open(&r->snapshot, r->pid, err, sizeof(err));
	mounts__forget();
	bounded__forget();
	return !failed;
}

static bool send_message(int sock, const struct tasks_message *m)
{
	return !message__send(sock, m, sizeof(*m), -1);
}

/* Returns the number of a function, after a message about it if it is new; 0: failed. */
static u32 function_of(struct reader *r, int sock, const struct snapshot_frame *f)
{
	struct tasks_message m = { .kind = TASKS_FUNCTION, .function.line = f->first_line };
	u32 *number;

	snprintf(m.function.name, sizeof(m.function.name), "%s", f->name);
	snprintf(m.function.file, sizeof(m.function.file), "%s", f->file);
	number = map__get(&r->functions, &m.function);
	if (!number || *number)
		return number ? *number : 0;
	if (r->functions.n > TASK_FUNCTIONS_MAX)
		return 0;
	*number = m.function.number = r->functions.n;
	return send_message(sock, &m) ? *number : 0;
}

static bool fill(struct reader *r, int sock, const struct task_stack *from, struct tasks_stack *to)
{
	for (; to->n < from->n; to->n++) {
		to->frames[to->n].function = function_of(r, sock, &from->frames[to->n]);
		to->frames[to->n].line = from->frames[to->n].line;
		if (!to->frames[to->n].function)
			return false;
	}
	return true;
}

/* Waits for up to DELAY_NS; the filter of system calls allows no sleep, but waits for a futex. Returns the ns. */
static u64 wait_randomly(struct reader *r)
{
	struct timespec limit = { .tv_nsec = (long)(rand_r(&r->random) % DELAY_NS) };
	u32 futex = 0;
	u64 begun = timing__now();

	syscall(SYS_futex, &futex, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
	return timing__now() - begun;
}

static void on_name(u32 own_tid, const char *name, void *arg)
{
	struct tasks_message m = { .kind = TASKS_NAME, .name.own_tid = own_tid };
	struct reader *r = arg;
	struct tasks_name *sent;

	if (r->names.n == 2 * THREAD_NAMES_MAX)
		map__free(&r->names);
	utf8__copy(m.name.text, sizeof(m.name.text), name);
	sent = map__get(&r->names, &own_tid);
	if (r->failed || !sent || !memcmp(sent, &m.name, sizeof(*sent)) || r->names_sent++ >= THREAD_NAMES_MAX)
		return;
	*sent = m.name;
	r->failed = !send_message(r->sock, &m);
}

static void on_gil(u64 address, u64 interpreter, void *arg)
{
	struct tasks_message m = { .kind = TASKS_GIL, .gil = { address, interpreter } };
	struct reader *r = arg;
	struct tasks_gil *sent;

	if (r->gils.n == 2 * THREAD_NAMES_MAX)
		map__free(&r->gils);
	sent = map__get(&r->gils, &address);
	if (r->failed || !sent || !memcmp(sent, &m.gil, sizeof(*sent)) || r->names_sent++ >= THREAD_NAMES_MAX)
		return;
	*sent = m.gil;
	r->failed = !send_message(r->sock, &m);
}

static void read_program(struct reader *r)
{
	struct tasks_message m = { .kind = TASKS_PROGRAM };

	snapshot__program(&r->snapshot, &m.program);
	if (!memcmp(&m.program, &r->program, sizeof(m.program)))
		return;
	r->program = m.program;
	r->failed = !send_message(r->sock, &m);
}

static int read_names(struct reader *r)
{
	u64 word;

	r->names_sent = 0;
	read_program(r);
	snapshot__names(&r->snapshot, on_name, r);
	snapshot__gils(&r->snapshot, on_gil, r);
	return snapshot__read(&r->snapshot, r->snapshot.runtime, &word, sizeof(word)) ? 0 : -ESRCH;
}

/* Reads and answers once. false: failed. */
static bool answer(struct reader *r, int sock, u8 request)
{
	struct tasks_message end = { .kind = TASKS_END, .end.error = r->error };
	u64 begun = timing__clock(CLOCK_PROCESS_CPUTIME_ID);

	if (++r->readings % FORGET_EVERY == 0 || r->snapshot.code_bytes > CODE_BYTES_MAX)
		snapshot__forget_objects(&r->snapshot);
	if (!end.end.error && (request & READ_NAMES))
		end.end.error = read_names(r);
	if (!end.end.error && (request & READ_TASKS)) {
		end.end.delay_ns = wait_randomly(r);
		end.end.error = snapshot__tasks(&r->snapshot, &r->tasks);
	}
	for (u32 i = 0; i < r->tasks.n && (request & READ_TASKS) && !end.end.error; i++) {
		const struct task_group *g = &r->tasks.groups[i];
		struct tasks_message m = {
			.kind = TASKS_GROUP,
			.group = { .tasks = g->tasks, .begun = g->begun, .serves = g->serves, .object = g->object },
		};

		m.group.peer = g->peer;
		if (!fill(r, sock, &g->stack, &m.group.stack) || !fill(r, sock, &g->holder, &m.group.holder) ||
		    !fill(r, sock, &g->last, &m.group.last) || !send_message(sock, &m))
			return false;
	}
	end.end.all = r->tasks.all;
	end.end.waiting = r->tasks.waiting;
	end.end.more = r->tasks.more;
	end.end.cost_ns = timing__clock(CLOCK_PROCESS_CPUTIME_ID) - begun;
	return !r->failed && send_message(sock, &end);
}

static void serve(int sock, void *arg)
{
	struct reader *r = arg;
	char err[512];
	u8 request;
	int fd;

	r->sock = sock;
	r->random = (unsigned int)timing__now();
	map__init(&r->functions, sizeof(struct tasks_function), sizeof(u32));
	map__init(&r->names, sizeof(u32), sizeof(struct tasks_name));
	map__init(&r->gils, sizeof(u64), sizeof(struct tasks_gil));
	r->error = snapshot__identify(&r->snapshot, err, sizeof(err));
	r->error = r->error && r->error != -EAGAIN ? -ENOEXEC : r->error;
	snapshot__close_files(&r->snapshot);
	r->snapshot.code_bytes_max = CODE_BYTES_MAX;
	while (message__receive(sock, &request, sizeof(request), &fd) > 0 && answer(r, sock, request))
		;
}

int task_readers__start(struct task_readers *readers, u32 pid, bool remote_files)
{
	struct reader *r;
	struct sandbox child;
	u32 unused = TASK_READERS_MAX;
	int err;

	/* a process could make any number of children hang that read its memory */
	for (u32 i = 0; i < TASK_READERS_MAX; i++) {
		if (!readers->pids[i])
			unused = i;
		else if (readers->targets[i] == pid)
			return -EAGAIN;
	}
	if (unused == TASK_READERS_MAX)
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->pid = pid;
	r->remote_files = remote_files;
	err = sandbox__fork_prepared(&child, prepare, serve, r);
	free(r);
	if (err)
		return err;
	readers->pids[unused] = child.pid;
	readers->targets[unused] = pid;
	return child.sock;
}

void task_readers__ended(struct task_readers *readers, pid_t pid)
{
	for (u32 i = 0; i < TASK_READERS_MAX; i++)
		if (readers->pids[i] == pid)
			readers->pids[i] = 0;
}
