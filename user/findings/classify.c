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
#include "findings/classify_spin.h"
#include "findings/hidden_loops.h"
#include "findings/rules.h"
#include "model/gc_stack.h"
#include "model/lock_kind.h"
#include "output/text.h"
#include "util/array.h"
#include "util/path.h"

bool classify__starts_child(const struct stack_frame *f)
{
	return path__ends_with(f->name, "_bootstrap") && (path__ends_with(f->file, "multiprocessing/process.py") ||
							  path__ends_with(f->file, "billiard/process.py"));
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
};

/* What is known about a frame */
struct frame_notes {
	struct frame_parts parts;
	bool has_parts;
	bool is_callback, calls_loop; /* see stack_parts__note_loop() */
};

void stack_parts__note_loop(const struct stacks *stacks, u32 frame, bool is_caller)
{
	struct frame_notes *notes = stacks__room(stacks, frame, sizeof(*notes));

	if (notes && is_caller)
		notes->calls_loop = true;
	else if (notes)
		notes->is_callback = true;
}

static bool is_called_by_hidden_loop(const struct stacks *stacks, u32 at, u32 caller)
{
	const struct frame_notes *notes = stacks__room(stacks, at, sizeof(*notes));
	const struct frame_notes *callers = stacks__room(stacks, caller, sizeof(*callers));

	return (notes && notes->is_callback) || (callers && callers->calls_loop);
}

/* Adds what a Python frame shows as a caller of the frames further in, or as the user's code. */
static void add_called_by(struct frame_parts *p, const struct stack_frame *f, u32 at)
{
	const struct rule *rule = rule__of(f);
	bool is_own = stack_frame__is_own(f), is_loop = rule && rule->role == RULE_LOOPS;
	bool calls_user = rule && rule->role >= RULE_RUNS;
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
		parts->words = NULL;
	}
	/*
	 * The outermost rule that the user's code called decides, but the innermost pool. Below a function of kind
	 * `none` that calls the user's code a server is at work, so its own rule no longer makes waits idle.
	 */
	parts->rule = calls_user && !rule->kind ? FINDING_NONE : outer_rule || !rule ? outer_rule : rule->kind;
	parts->pool = rule && rule->role == RULE_POOL ? at : parts->pool;
	parts->words = rule && rule->words ? rule : parts->words;
	parts->worker = rule && rule->role == RULE_RUNS && rule->kind == FINDING_IDLE ? at : parts->worker;
	parts->waits_in_loop = parts->waits_in_loop || is_loop;
	p->role.serves = p->role.serves || calls_user;
	p->role.in_request = p->role.in_request || (rule && rule->role >= RULE_SERVES);
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
	parts->passes_data = path__ends_with(f->file, "multiprocessing/connection.py") ||
			     path__ends_with(f->file, "multiprocessing/queues.py") ||
			     path__ends_with(f->file, "multiprocessing/reduction.py");
	p->native_rule = FINDING_NONE;
}

/* Returns whether it is native code that the interpreter called, and not its own. */
static bool is_callable(const struct stack_frame *f)
{
	return !path__is_interpreter(f->file) && !path__is_foreign_call(f->file);
}

static void add_native(struct frame_parts *p, const struct stacks *stacks, const struct stack_frame *f, u32 at)
{
	const struct stack_frame *called = stacks__frame(stacks, p->parts.called), *caller;
	const struct rule *rule = rule__of(f);

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
	if (!rule)
		return;
	if (rule->role == RULE_NATIVE_RUNS) {
		p->parts.worker = at;
		return;
	}
	p->native_rule = p->native_rule ? p->native_rule : rule->kind;
	p->parts.words = rule->words ? rule : p->parts.words;
	p->parts.waits_in_loop = p->parts.waits_in_loop || rule->role == RULE_NATIVE_LOOPS;
	/* a program without Python, such as node */
	p->parts.loop = p->parts.loop || (rule->role == RULE_NATIVE_LOOPS && !p->parts.python);
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
	if (classify__starts_child(f)) {
		*p = (struct frame_parts){ 0 };
	} else {
		if (is_called_by_hidden_loop(stacks, at, f->caller)) {
			p->parts.rule = FINDING_NONE;
			p->role = (struct callers_role){ .serves = true, .in_request = true, .loop = true };
		}
		add_called_by(p, f, at);
	}
	add_innermost(p, f, at);
}

/* Adds the frames of a stack to those of its callers that earlier stacks had, so that a deep stack is read once. */
static struct frame_parts find_parts(const struct stacks *stacks, u32 stack)
{
	u32 path[STACKS_DEEPEST], n = 0;
	struct frame_parts p = { 0 };
	struct frame_notes *notes;
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(stacks, at)) != NULL; at = f->caller) {
		notes = stacks__room(stacks, at, sizeof(*notes));
		if (notes && notes->has_parts) {
			p = notes->parts;
			break;
		}
		path[n++] = at;
	}
	while (n--) {
		add_frame(&p, stacks, path[n]);
		notes = stacks__room(stacks, path[n], sizeof(*notes));
		if (!notes)
			continue;
		notes->parts = p;
		notes->has_parts = true;
	}
	return p;
}

struct stack_parts stack_parts__of(const struct stacks *stacks, u32 stack)
{
	struct frame_parts p = find_parts(stacks, stack);
	struct stack_parts parts = p.parts;

	/* the threads of a collective itself wait for something to do; a backward pass waits in one for other ranks */
	if (p.native_rule == FINDING_RANKS && !parts.python)
		parts.rule = FINDING_IDLE;
	else if (!parts.rule || (p.native_rule == FINDING_RANKS && parts.rule == FINDING_RESULT))
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
		[ACTIVITY_STOPPED] = FINDING_STOPPED, [ACTIVITY_TRACED] = FINDING_TRACED,
		[ACTIVITY_FROZEN] = FINDING_FROZEN,   [ACTIVITY_UNINTERRUPTIBLE] = FINDING_BLOCKED,
	};

	return cause == ACTIVITY_TRANSFER && uninterruptible ? FINDING_DISK : kinds[cause];
}

static bool is_call(const struct finding_input *in, u32 reason, const char *list)
{
	const char *name = activity__name(in->activity, reason);

	return name && text__has_item(list, ' ', name);
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

const char *stack_parts__words(const struct stack_parts *parts, enum finding_kind kind)
{
	const struct rule *rule = parts->words;
	bool is_of_kind = rule && kind == FINDING_PEER	? !rule->kind || rule->kind == FINDING_PEER :
			  rule && kind == FINDING_QUEUE ? IS_ONE_OF(rule->kind, FINDING_QUEUE, FINDING_IDLE) :
							  false;

	if (kind == FINDING_QUEUE && is_for_pool(parts))
		return "a free object of a pool";
	return is_of_kind ? rule->words : NULL;
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
			return parts->rule == FINDING_IDLE ? FINDING_IDLE : FINDING_CHILD;
		/* it is the event loop that waits for something to do, and not its callbacks */
		if (parts->loop && !parts->waits_in_loop && (!parts->rule || parts->rule == FINDING_IDLE))
			return FINDING_PEER;
		if (parts->rule || parts->waits_in_loop || !parts->user || is_call(in, key->reason, "accept accept4"))
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
 * Returns whether the time for which a thread waits for a CPU after a wait of this kind counts as part of that wait:
 * without the wait it would have run on. Not after a sleep or a wait for something to do: that is a wait for a CPU like
 * any other. Not after a wait for the GIL either, whose time must equal that of the holders.
 */
static bool is_delay_of(enum finding_kind kind)
{
	return IS_ONE_OF(kind, FINDING_LOCK, FINDING_FILE_LOCK, FINDING_DISK, FINDING_MEMORY, FINDING_PEER,
			 FINDING_CHILD, FINDING_RESULT, FINDING_BACKWARD, FINDING_QUEUE, FINDING_LOADER,
			 FINDING_SEMAPHORE, FINDING_BARRIER, FINDING_RANKS, FINDING_GPU_WAIT, FINDING_NCCL,
			 FINDING_LIBRARY, FINDING_CALL);
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
	int err = hidden_loops__find(in);

	if (err)
		return err;
	for (u32 i = 0; i < in->profile->cells.n; i++)
		classify(in, i);
	err = classify_semaphore__waits(in);
	if (!err)
		err = classify_short__waits(in);
	return err ? err : classify_spin__threads(in);
}
