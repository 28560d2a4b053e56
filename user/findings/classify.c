// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Classifies a wait by its call and by the library functions between the user's code and the call: `work_queue.get` of
 * a pool's thread waits for something to do, `recv` below `requests.get` for a peer. Without such functions the
 * thread's behaviour decides: one that hardly does anything else is idle.
 */
#include "findings/classify.h"

#include <errno.h>
#include <string.h>

#include "findings/classify_semaphore.h"
#include "findings/classify_short.h"
#include "model/gc_stack.h"
#include "model/lock_kind.h"
#include "util/array.h"
#include "util/path.h"

/* Functions of libraries, by the end of the file's path and the last part of the name; NULL: the file's functions. */
static const struct rule {
	const char *file, *function; /* function: names separated by spaces */
	enum finding_kind kind; /* FINDING_NONE: does not classify the wait */
	/* Calls the user's code for each task (RUNS), request (SERVES) or callback of an event loop (LOOPS). */
	enum { CALLED, RUNS, SERVES, LOOPS } role;
} rules[] = {
	{ "/threading.py", "wait wait_for", FINDING_CONDITION, CALLED },
	{ "/threading.py", "acquire", FINDING_SEMAPHORE, CALLED },
	{ "/threading.py", "join _wait_for_tstate_lock _shutdown", FINDING_RESULT, CALLED },
	{ "/queue.py", "get", FINDING_IDLE, CALLED },
	{ "/queue.py", "put join", FINDING_QUEUE, CALLED },
	{ "/concurrent/futures/thread.py", "_worker run", FINDING_IDLE, RUNS },
	{ "/concurrent/futures/thread.py", "shutdown", FINDING_RESULT, CALLED },
	{ "/concurrent/futures/process.py", "run wait_result_broken_or_wakeup _process_worker", FINDING_IDLE, RUNS },
	{ "/concurrent/futures/process.py", "shutdown", FINDING_RESULT, CALLED },
	{ "/concurrent/futures/_base.py", "result exception wait as_completed result_iterator", FINDING_RESULT,
	  CALLED },
	{ "/multiprocessing/pool.py", "worker _handle_workers _handle_tasks _handle_results", FINDING_IDLE, RUNS },
	{ "/multiprocessing/pool.py", "get wait map starmap apply next", FINDING_RESULT, CALLED },
	{ "/multiprocessing/pool.py", "join", FINDING_CHILD, CALLED },
	{ "/multiprocess/pool.py", "worker _handle_workers _handle_tasks _handle_results", FINDING_IDLE, RUNS },
	{ "/multiprocess/pool.py", "get wait map starmap apply next", FINDING_RESULT, CALLED },
	{ "/multiprocess/pool.py", "join", FINDING_CHILD, CALLED },
	{ "/gevent/threadpool.py", NULL, FINDING_NONE, RUNS },
	{ "/pebble/pool/", NULL, FINDING_NONE, RUNS },
	{ "/multiprocessing/queues.py", "get _feed", FINDING_IDLE, CALLED },
	{ "/multiprocessing/queues.py", "put", FINDING_QUEUE, CALLED },
	{ "/multiprocessing/process.py", "join", FINDING_CHILD, CALLED },
	{ "/multiprocessing/popen_fork.py", "poll wait", FINDING_CHILD, CALLED },
	{ "/multiprocessing/connection.py", "accept", FINDING_IDLE, CALLED },
	{ "/multiprocessing/resource_tracker.py", "main", FINDING_IDLE, CALLED },
	{ "/multiprocessing/forkserver.py", "main", FINDING_IDLE, SERVES },
	{ "/multiprocessing/managers.py", "accepter handle_request serve_client serve_forever", FINDING_IDLE, SERVES },
	{ "/subprocess.py", NULL, FINDING_CHILD, CALLED },
	{ "/selectors.py", "select", FINDING_IDLE, CALLED },
	{ "/select.py", "select poll", FINDING_IDLE, CALLED },
	{ "/socket.py", "accept", FINDING_IDLE, CALLED },
	{ "/socketserver.py", "serve_forever handle_request", FINDING_IDLE, SERVES },
	{ "/socketserver.py", "process_request process_request_thread finish_request", FINDING_NONE, SERVES },
	{ "/http/server.py", "handle_one_request handle", FINDING_IDLE, SERVES },
	{ "/asyncio/base_events.py", "_run_once run_forever run_until_complete", FINDING_IDLE, LOOPS },
	{ "/asyncio/events.py", "_run", FINDING_NONE, LOOPS },
	{ "/asyncio/runners.py", "run", FINDING_IDLE, LOOPS },
	{ "/torch/utils/data/_utils/worker.py", "_worker_loop", FINDING_IDLE, RUNS },
	{ "/torch/autograd/graph.py", "_engine_run_backward", FINDING_RESULT, CALLED },
	{ "/torch/distributed/distributed_c10d.py", NULL, FINDING_RANKS, CALLED },
	{ "/torch/utils/data/dataloader.py", "_try_get_data _get_data _next_data", FINDING_LOADER, CALLED },
	{ "/gunicorn/arbiter.py", NULL, FINDING_IDLE, CALLED },
	{ "/gunicorn/http/unreader.py", NULL, FINDING_IDLE, CALLED },
	{ "/gunicorn/workers/", NULL, FINDING_IDLE, SERVES },
	{ "/billiard/", NULL, FINDING_IDLE, SERVES },
	{ "/kombu/", NULL, FINDING_IDLE, SERVES },
	{ "/celery/", NULL, FINDING_IDLE, SERVES },
	{ "/uvicorn/", NULL, FINDING_IDLE, SERVES },
	{ "/waitress/", NULL, FINDING_IDLE, SERVES },
	{ "/werkzeug/serving.py", NULL, FINDING_IDLE, SERVES },
	{ "/anyio/_backends/", "run", FINDING_IDLE, SERVES },
	{ "/starlette/", NULL, FINDING_NONE, SERVES },
	{ "/flask/app.py", NULL, FINDING_NONE, SERVES },
	{ "/django/core/handlers/", NULL, FINDING_NONE, SERVES },
	{ "/logging/handlers.py", "_monitor", FINDING_IDLE, CALLED },
	{ "/tqdm/_monitor.py", NULL, FINDING_IDLE, CALLED },
	{ "/redis/commands/core.py", "blpop brpop blmove blmpop brpoplpush bzpopmin bzpopmax bzmpop xread xreadgroup",
	  FINDING_IDLE, CALLED },
	{ "/redis/client.py", "listen get_message", FINDING_IDLE, CALLED },
	{ "/kafka/consumer/group.py", "poll __next__ next_v2 _message_generator _message_generator_v2", FINDING_IDLE,
	  CALLED },
	{ "/pika/", "start_consuming process_data_events", FINDING_IDLE, CALLED },
};

/* Matches "get" in "Queue.get" and in "get", as older Pythons have no qualified names. */
static bool is_function(const char *list, const char *name)
{
	const char *last = strrchr(name, '.');
	size_t len;

	last = last ? last + 1 : name;
	len = strlen(last);
	for (const char *at = list; (at = strstr(at, last)) != NULL && len; at += len)
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

static bool is_in(const char *file, const char *part)
{
	size_t len = strlen(part), all = strlen(file);

	if (part[len - 1] == '/')
		return strstr(file, part) != NULL;
	return (all >= len && !strcmp(file + all - len, part)) || !strcmp(file, part + 1);
}

static const struct rule *rule_of(const struct stack_frame *f)
{
	for (size_t i = 0; f->kind == FRAME_PYTHON && i < ARRAY_LEN(rules); i++)
		if (is_in(f->file, rules[i].file) && (!rules[i].function || is_function(rules[i].function, f->name)))
			return &rules[i];
	return NULL;
}

u8 classify__rule(const struct stack_frame *f)
{
	const struct rule *rule = rule_of(f);

	return rule ? (u8)rule->kind : FINDING_NONE;
}

/* Returns whether a part of the path begins with "pool", as psycopg_pool/ and pooling.py, or is connectionpool.py. */
static bool names_pool(const char *path)
{
	if (strstr(path, "connectionpool"))
		return true;
	for (const char *at = path; (at = strstr(at, "pool")) != NULL; at++)
		if (at > path && strchr("/_-.", at[-1]))
			return true;
	return false;
}

bool classify__is_pool(const struct stack_frame *f)
{
	static const char takes[] =
		"get _get _do_get get_conn _get_conn getconn _getconn get_connection _get_connection get_socket "
		"connection acquire _acquire checkout _checkout connect borrow "
		"wait_for_connection _wait_for_available_connection";
	const char *in = strstr(f->file, "-packages/");

	if (f->kind != FRAME_PYTHON || !in || !stack_frame__is_package(f) || rule_of(f))
		return false;
	return is_function(takes, f->name) &&
	       (names_pool(in) || strstr(f->name, "Pool") || strstr(f->name, "wait_for_available_connection") ||
		strstr(f->name, "wait_for_connection"));
}

bool classify__starts_child(const struct stack_frame *f)
{
	return is_function("_bootstrap", f->name) &&
	       (is_in(f->file, "/multiprocessing/process.py") || is_in(f->file, "/billiard/process.py"));
}

/* What a stack shows, as found from the outermost frame inwards: each frame adds to what its caller has. */
struct frame_parts {
	struct stack_parts parts;
	u32 named, first; /* innermost frames of the user's code: not generated, any */
	enum finding_kind native_rule; /* of frames inside of the innermost Python frame */
	/* What frames from this one outwards mean for a function of the user that they called. */
	struct callers_role {
		bool serves, in_request, loop;
		u32 outermost; /* the user's outermost frame inside of the loop, if there is one */
	} role;
	u32 callback; /* as of the innermost frame of the user's code */
	bool is_known;
};

static bool is_own_code(const struct stack_frame *f)
{
	return stack_frame__is_users(f) && !stack_frame__is_package(f);
}

/* Adds what a Python frame shows as a caller of the frames further in, or as the user's code. */
static void add_called_by(struct frame_parts *p, const struct stack_frame *f, u32 at)
{
	const struct rule *rule = rule_of(f);
	bool is_own = is_own_code(f), is_loop = rule && rule->role == LOOPS;
	enum finding_kind outer_rule = is_own ? FINDING_NONE : p->parts.rule;
	struct stack_parts *parts = &p->parts;

	if (is_own) {
		p->first = at;
		p->named = stack_frame__is_generated(f) ? p->named : at;
		p->callback = p->role.outermost ? p->role.outermost : at;
		parts->serves = p->role.serves;
		parts->in_request = p->role.in_request;
		parts->loop = p->role.loop;
		parts->waits_in_loop = false;
		parts->pool = 0;
	}
	/* the outermost rule that the user's code called decides, but the innermost pool */
	parts->rule = outer_rule || !rule ? outer_rule : rule->kind;
	parts->pool = classify__is_pool(f) ? at : parts->pool;
	parts->waits_in_loop = parts->waits_in_loop || is_loop;
	p->role.serves = p->role.serves || (rule && rule->role != CALLED);
	p->role.in_request = p->role.in_request || (rule && rule->role >= SERVES);
	p->role.loop = p->role.loop || is_loop;
	p->role.outermost = is_loop ? 0 : is_own && !p->role.outermost ? at : p->role.outermost;
}

/* Adds what the innermost Python frame shows. */
static void add_innermost(struct frame_parts *p, const struct stack_frame *f, u32 at)
{
	struct stack_parts *parts = &p->parts;

	parts->python = at;
	parts->called = 0;
	parts->is_foreign = parts->retries_database = false;
	parts->passes_data = is_in(f->file, "/multiprocessing/connection.py") ||
			     is_in(f->file, "/multiprocessing/queues.py") ||
			     is_in(f->file, "/multiprocessing/reduction.py");
	p->native_rule = FINDING_NONE;
}

/* Returns whether it is native code that the interpreter called, and not its own. */
static bool is_callable(const struct stack_frame *f)
{
	return !path__is_interpreter(f->file) && !path__is_foreign_call(f->file);
}

static enum finding_kind rule_of_native(const struct stack_frame *f)
{
	/* C++'s mangled name of what is in namespace c10d, PyTorch's collectives */
	if (path__begins_with(f->name, "_ZN4c10d") || path__begins_with(f->name, "_ZNK4c10d"))
		return FINDING_RANKS;
	/* a thread of the autograd engine waits for backward nodes; in Tensor.backward() it is a wait for the result */
	return path__begins_with(f->name, "_ZN5torch8autograd10ReadyQueue3pop") ? FINDING_IDLE : FINDING_NONE;
}

static void add_native(struct frame_parts *p, const struct stacks *stacks, const struct stack_frame *f, u32 at)
{
	const struct stack_frame *called = stacks__frame(stacks, p->parts.called), *caller;

	p->parts.native = at;
	/* the outermost one; "[frames missing]" has no file */
	if (is_callable(f) && (!called || !*called->file)) {
		/* ctypes itself calls the interpreter after the library's function, and waits for the GIL there */
		caller = stacks__frame(stacks, f->caller);
		p->parts.called = at;
		p->parts.is_foreign = caller && caller->kind == FRAME_NATIVE && path__is_foreign_call(caller->file);
	}
	p->parts.collects = p->parts.collects || gc_stack__is_collector(f);
	if (path__begins_with(path__file_name(f->file), "libsqlite3.") || path__begins_with(f->name, "sqlite3"))
		p->parts.retries_database = true;
	p->native_rule = p->native_rule ? p->native_rule : rule_of_native(f);
}

static void add_frame(struct frame_parts *p, const struct stacks *stacks, u32 at)
{
	const struct stack_frame *f = stacks__frame(stacks, at);

	if (f->kind == FRAME_NATIVE)
		add_native(p, stacks, f, at);
	else
		p->parts.collects = false;
	if (f->kind != FRAME_PYTHON)
		return;
	/* frames further out are the parent's */
	if (classify__starts_child(f))
		*p = (struct frame_parts){ 0 };
	else
		add_called_by(p, f, at);
	add_innermost(p, f, at);
}

/* Adds the frames of a stack to those of its callers that earlier stacks had, so that a deep stack is read once. */
static struct frame_parts find_parts(const struct stacks *stacks, u32 stack)
{
	u32 path[STACKS_DEEPEST], n = 0;
	struct frame_parts p = { 0 }, *known;
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller) {
		known = stacks__room(stacks, at, sizeof(*known));
		if (known && known->is_known) {
			p = *known;
			break;
		}
		path[n++] = at;
	}
	while (n--) {
		add_frame(&p, stacks, path[n]);
		p.is_known = true;
		known = stacks__room(stacks, path[n], sizeof(*known));
		if (known)
			*known = p;
	}
	return p;
}

struct stack_parts stack_parts__of(const struct stacks *stacks, u32 stack)
{
	struct frame_parts p = find_parts(stacks, stack);
	struct stack_parts parts = p.parts;

	/* the threads of a collective itself wait for something to do */
	if (!parts.rule && (parts.python || p.native_rule != FINDING_RANKS))
		parts.rule = p.native_rule;
	parts.user = p.named ? p.named : p.first;
	parts.callback = parts.loop ? p.callback : 0;
	return parts;
}

static enum finding_kind kind_of_cause(enum activity_cause cause, bool uninterruptible)
{
	static const enum finding_kind kinds[ACTIVITY_CAUSES] = {
		[ACTIVITY_ON_CPU] = FINDING_COMPUTE,  [ACTIVITY_CPU] = FINDING_CPU,
		[ACTIVITY_QUOTA] = FINDING_QUOTA,     [ACTIVITY_GIL] = FINDING_GIL,
		[ACTIVITY_LOCK] = FINDING_LOCK,	      [ACTIVITY_CONDITION] = FINDING_CONDITION,
		[ACTIVITY_CUDA] = FINDING_LIBRARY,    [ACTIVITY_CUDA_SYNC] = FINDING_GPU_WAIT,
		[ACTIVITY_NCCL] = FINDING_NCCL,	      [ACTIVITY_GC] = FINDING_GC,
		[ACTIVITY_LIBRARY] = FINDING_LIBRARY, [ACTIVITY_DISK] = FINDING_DISK,
		[ACTIVITY_FAULT] = FINDING_DISK,      [ACTIVITY_RECLAIM] = FINDING_MEMORY,
		[ACTIVITY_CONNECT] = FINDING_PEER,    [ACTIVITY_SLEEP] = FINDING_SLEEP,
		[ACTIVITY_EVENTS] = FINDING_IDLE,     [ACTIVITY_FUTEX] = FINDING_CONDITION,
		[ACTIVITY_SEND] = FINDING_PEER,	      [ACTIVITY_RECEIVE] = FINDING_PEER,
		[ACTIVITY_SYNC] = FINDING_DISK,	      [ACTIVITY_TRANSFER] = FINDING_PEER,
		[ACTIVITY_SYSCALL] = FINDING_CALL,    [ACTIVITY_ASLEEP] = FINDING_ASLEEP,
		[ACTIVITY_STOPPED] = FINDING_STOPPED, [ACTIVITY_UNINTERRUPTIBLE] = FINDING_BLOCKED,
	};

	return cause == ACTIVITY_TRANSFER && uninterruptible ? FINDING_DISK : kinds[cause];
}

static bool is_call(const struct finding_input *in, u32 reason, const char *list)
{
	const char *name = activity__name(in->activity, reason);

	return name && is_function(list, name);
}

/* Classifies a futex without a rule by the functions that wait for it. */
static enum finding_kind kind_of_futex(const struct finding_input *in, u32 stack, const struct stack_parts *parts)
{
	if (lock_kind__is_send(in->stacks, stack))
		return FINDING_QUEUE;
	switch (lock_kind__of_stack(in->stacks, stack)) {
	case LOCK_KIND_MUTEX:
		return FINDING_LOCK;
	case LOCK_KIND_QUEUE:
		return FINDING_IDLE;
	case LOCK_KIND_RESULT:
	case LOCK_KIND_JOIN:
		return FINDING_RESULT;
	case LOCK_KIND_BARRIER:
		return FINDING_BARRIER;
	case LOCK_KIND_SEMAPHORE:
		return parts->python ? FINDING_SEMAPHORE : FINDING_CONDITION;
	case LOCK_KIND_UNKNOWN:
		return parts->python ? FINDING_LOCK : FINDING_CONDITION;
	default:
		return FINDING_CONDITION;
	}
}

/* Returns whether the user's code waits until a package's pool has an object for it. */
static bool is_for_pool(const struct stack_parts *parts)
{
	return parts->pool && parts->user &&
	       (parts->rule == FINDING_IDLE || parts->rule == FINDING_CONDITION || parts->rule == FINDING_SEMAPHORE);
}

/* Classifies a wait by its cause, its call and the library functions in its stack. */
static enum finding_kind kind_of_wait(const struct finding_input *in, const struct profile_key *key,
				      enum activity_cause cause, const struct stack_parts *parts)
{
	enum finding_kind kind = kind_of_cause(cause, key->uninterruptible);

	switch (cause) {
	case ACTIVITY_FUTEX:
	case ACTIVITY_CONDITION:
	case ACTIVITY_LOCK:
		if (is_for_pool(parts))
			return FINDING_QUEUE;
		/* within a request, the wait is for a queue, such as a pool of connections */
		if (parts->rule == FINDING_IDLE && parts->in_request)
			return FINDING_QUEUE;
		if (parts->rule == FINDING_CONDITION &&
		    lock_kind__of_stack(in->stacks, key->stack) == LOCK_KIND_BARRIER)
			return FINDING_BARRIER;
		if (parts->rule)
			return parts->rule;
		return cause == ACTIVITY_LOCK || !key->stack ? kind : kind_of_futex(in, key->stack, parts);
	case ACTIVITY_EVENTS:
		if (is_call(in, key->reason, "wait4 waitid"))
			return FINDING_CHILD;
		if (parts->rule || !parts->user || is_call(in, key->reason, "accept accept4"))
			return parts->rule ? parts->rule : kind;
		/* a client library waits for its peer, `select` in the user's own code mostly for something to do */
		if (is_call(in, key->reason, "poll ppoll"))
			return FINDING_PEER;
		return parts->python != parts->user &&
				       is_call(in, key->reason, "select pselect6 epoll_wait epoll_pwait") ?
			       FINDING_PEER :
			       kind;
	case ACTIVITY_SLEEP:
		if (parts->retries_database)
			return FINDING_LOCK;
		return parts->rule ? parts->rule : kind;
	case ACTIVITY_SYSCALL:
		/* fcntl() blocks for a lock alone (F_SETLKW, F_OFD_SETLKW) */
		return is_call(in, key->reason, "flock fcntl") ? FINDING_FILE_LOCK : kind;
	case ACTIVITY_RECEIVE:
	case ACTIVITY_TRANSFER:
	case ACTIVITY_ASLEEP:
		return parts->rule ? parts->rule : kind;
	default:
		return kind;
	}
}

/* Returns whether a wait without Python code may be idleness. */
static bool may_be_idle(enum finding_kind kind)
{
	return kind == FINDING_CONDITION || kind == FINDING_PEER;
}

/* Returns whether the thread hardly does anything but wait, and no user code says for what. */
static bool is_idle_by_behaviour(const struct profile_key *key, const struct profile_cell *cell,
				 const struct profile_thread *t, enum finding_kind kind,
				 const struct stack_parts *parts)
{
	bool is_main = key->thread.pid == key->thread.tid;

	/* a background thread that now and then does something; not one whose retries wait longer and longer */
	if (kind == FINDING_SLEEP && !is_main && (parts->python || parts->native) && !parts->serves &&
	    t->run < t->wall / 20)
		return !profile_cell__is_uneven(cell);
	if (!may_be_idle(kind) || (is_main && kind != FINDING_CONDITION))
		return false;
	if (parts->user)
		return false;
	return t->run + t->runnable < t->wall / 20;
}

/*
 * A thread that had to wait for a CPU after a wait: would it have run on without that wait? Then the delay is a part of
 * what the wait costs. After a sleep, or a wait for something to do, it is a wait for a CPU like any other, and the
 * times of waits for the GIL are those of its holders alone.
 */
static bool is_delay_of(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_LOCK, FINDING_FILE_LOCK, FINDING_DISK, FINDING_MEMORY, FINDING_PEER,
			 FINDING_CHILD, FINDING_RESULT, FINDING_QUEUE, FINDING_LOADER, FINDING_SEMAPHORE,
			 FINDING_BARRIER, FINDING_RANKS, FINDING_GPU_WAIT, FINDING_NCCL, FINDING_LIBRARY, FINDING_CALL);
}

static void classify_runnable(const struct finding_input *in, const struct profile_key *key, struct profile_cell *cell,
			      const struct profile_thread *t, const struct stack_parts *parts)
{
	enum finding_kind kind;

	cell->kind = cell->cause == ACTIVITY_QUOTA ? FINDING_QUOTA : FINDING_CPU;
	if (key->reason >= ACTIVITY_CAUSE_BASE || !t)
		return;
	kind = kind_of_wait(in, key, activity__cause(in->activity, key->reason), parts);
	cell->is_delay = is_delay_of(kind) && !is_idle_by_behaviour(key, cell, t, kind, parts);
	if (cell->is_delay)
		cell->kind = kind;
}

static void classify(const struct finding_input *in, u32 i)
{
	const struct profile_key *key = profile__key(in->profile, i);
	struct profile_cell *cell = profile__cell(in->profile, i);
	struct profile_thread *t = map__find(&in->profile->threads, &key->thread);
	struct stack_parts parts = stack_parts__of(in->stacks, key->stack);
	bool waits = key->state == ACTIVITY_BLOCKED ||
		     (key->state == ACTIVITY_UNKNOWN && key->reason < ACTIVITY_CAUSE_BASE);

	cell->code = parts.user ? parts.user : parts.python;
	if (key->state == ACTIVITY_RUNNING)
		cell->kind = FINDING_COMPUTE;
	else if (key->state == ACTIVITY_RUNNABLE)
		classify_runnable(in, key, cell, t, &parts);
	else if (waits)
		cell->kind = kind_of_wait(in, key, cell->cause, &parts);
	else
		cell->kind = FINDING_NONE;
	if (!t)
		return;
	t->has_python = t->has_python || parts.python;
	if (waits && is_idle_by_behaviour(key, cell, t, cell->kind, &parts))
		cell->kind = FINDING_IDLE;
	if (waits && cell->kind == FINDING_IDLE)
		t->idle_ns += cell->ns;
}

int classify__cells(const struct finding_input *in)
{
	int err;

	for (u32 i = 0; i < in->profile->cells.n; i++)
		classify(in, i);
	err = classify_semaphore__waits(in);
	return err ? err : classify_short__waits(in);
}
