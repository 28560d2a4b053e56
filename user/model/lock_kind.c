// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_kind.h"

#include <string.h>

#include "util/array.h"
#include "util/path.h"

static const char *const texts[LOCK_KINDS] = {
	[LOCK_KIND_UNKNOWN] = "lock or condition",
	[LOCK_KIND_MUTEX] = "lock",
	[LOCK_KIND_CONDITION] = "condition",
	[LOCK_KIND_EVENT] = "event",
	[LOCK_KIND_QUEUE] = "queue",
	[LOCK_KIND_SEMAPHORE] = "semaphore",
	[LOCK_KIND_BARRIER] = "barrier",
	[LOCK_KIND_RESULT] = "result",
	[LOCK_KIND_JOIN] = "end of a thread",
};

struct rule {
	const char *text; /* native: start of the function's name; Python: end of the file's path */
	const char *function; /* Python: the function's name without its class */
	enum lock_kind kind;
};

/* sem_wait is not among them: outside of Python a semaphore may be a lock or a signal. */
static const struct rule native_rules[] = {
	{ "pthread_mutex_", NULL, LOCK_KIND_MUTEX },	  { "__pthread_mutex_", NULL, LOCK_KIND_MUTEX },
	{ "pthread_rwlock_", NULL, LOCK_KIND_MUTEX },	  { "__pthread_rwlock_", NULL, LOCK_KIND_MUTEX },
	{ "__lll_lock_wait", NULL, LOCK_KIND_MUTEX },	  { "pthread_cond_", NULL, LOCK_KIND_CONDITION },
	{ "__pthread_cond_", NULL, LOCK_KIND_CONDITION }, { "pthread_barrier_", NULL, LOCK_KIND_BARRIER },
	{ "pthread_join", NULL, LOCK_KIND_JOIN },	  { "pthread_timedjoin", NULL, LOCK_KIND_JOIN },
	{ "pthread_clockjoin", NULL, LOCK_KIND_JOIN },	  { "__pthread_clockjoin", NULL, LOCK_KIND_JOIN },
	{ "__pthread_timedjoin", NULL, LOCK_KIND_JOIN },  { "_queue_SimpleQueue_get", NULL, LOCK_KIND_QUEUE },
	{ "simplequeue_get", NULL, LOCK_KIND_QUEUE },	  { "PyEvent_Wait", NULL, LOCK_KIND_EVENT },
};

/* From the innermost frame outwards, the last match before the user's code wins: Event.wait calls Condition.wait. */
static const struct rule python_rules[] = {
	{ "/threading.py", "wait", LOCK_KIND_CONDITION },
	{ "/threading.py", "wait_for", LOCK_KIND_CONDITION },
	{ "/threading.py", "join", LOCK_KIND_JOIN },
	{ "/threading.py", "_wait_for_tstate_lock", LOCK_KIND_JOIN },
	{ "/threading.py", "_shutdown", LOCK_KIND_JOIN },
	{ "/queue.py", "get", LOCK_KIND_QUEUE },
	{ "/queue.py", "put", LOCK_KIND_QUEUE },
	{ "/queue.py", "join", LOCK_KIND_QUEUE },
	{ "/concurrent/futures/_base.py", "result", LOCK_KIND_RESULT },
	{ "/concurrent/futures/_base.py", "exception", LOCK_KIND_RESULT },
	{ "/concurrent/futures/_base.py", "wait", LOCK_KIND_RESULT },
	{ "/concurrent/futures/thread.py", "_worker", LOCK_KIND_QUEUE },
};

/* Objects whose functions implement waits: the code that waits is the one that calls them. */
static const char *const mechanisms[] = { "libc.so", "libc-2.",	  "libpthread", "ld-linux", "ld-musl", "libstdc++",
					  "libc++",  "libpython", "python",	"[vdso]",   "_queue.", "libgcc_s" };

/* Functions of the C++ library that are compiled into the program */
static const char *const inlined[] = { "std::",	    "_ZNSt",	     "_ZNKSt",	   "_ZSt",	"__gthread",
				       "__gnu_cxx", "_ZN9__gnu_cxx", "void std::", "bool std::" };

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool ends(const char *text, const char *with)
{
	size_t len = strlen(text), tail = strlen(with);

	return len >= tail && !strcmp(text + len - tail, with);
}

enum lock_kind lock_kind__of_native(const struct stack_frame *f)
{
	if (begins(path__file_name(f->file), "_queue."))
		return LOCK_KIND_QUEUE;
	for (size_t i = 0; i < ARRAY_LEN(native_rules); i++)
		if (begins(f->name, native_rules[i].text))
			return native_rules[i].kind;
	return LOCK_KIND_UNKNOWN;
}

static enum lock_kind of_python(const struct stack_frame *f)
{
	/* newer Pythons have qualified names: Condition.wait */
	const char *dot = strrchr(f->name, '.'), *name = dot ? dot + 1 : f->name;

	for (size_t i = 0; i < ARRAY_LEN(python_rules); i++) {
		if (!ends(f->file, python_rules[i].text) || strcmp(name, python_rules[i].function) != 0)
			continue;
		return begins(f->name, "Event.")   ? LOCK_KIND_EVENT :
		       begins(f->name, "Barrier.") ? LOCK_KIND_BARRIER :
						     python_rules[i].kind;
	}
	return LOCK_KIND_UNKNOWN;
}

enum lock_kind lock_kind__of_stack(const struct stacks *s, u32 stack)
{
	enum lock_kind kind = LOCK_KIND_UNKNOWN, found;
	const struct stack_frame *f;
	bool has_python = false, is_semaphore = false;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL; at = f->caller) {
		if (f->kind == FRAME_PYTHON) {
			if (stack_frame__is_users(f)) {
				has_python = true;
				break;
			}
			found = of_python(f);
			/* a library whose innermost frame matches no rule waits for a lock of its own */
			if (found && (kind || !has_python))
				kind = found;
			has_python = true;
		} else if (!has_python && !kind) {
			kind = lock_kind__of_native(f);
			is_semaphore = is_semaphore || begins(f->name, "sem_");
		}
	}
	if (kind)
		return kind;
	/* Python's own locks are semaphores or, from 3.13 on, futexes */
	return has_python ? LOCK_KIND_MUTEX : is_semaphore ? LOCK_KIND_SEMAPHORE : LOCK_KIND_UNKNOWN;
}

bool lock_kind__is_native_lock(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL && f->kind == FRAME_NATIVE; at = f->caller)
		if (lock_kind__of_native(f))
			return lock_kind__of_native(f) == LOCK_KIND_MUTEX;
	return false;
}

const char *lock_kind__text(enum lock_kind kind)
{
	return texts[kind < LOCK_KINDS ? kind : LOCK_KIND_UNKNOWN];
}

static bool is_mechanism(const struct stack_frame *f)
{
	const char *name = path__file_name(f->file);

	for (size_t i = 0; i < ARRAY_LEN(mechanisms); i++)
		if (begins(name, mechanisms[i]))
			return true;
	if (!strcmp(f->name, "[vdso]"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(inlined); i++)
		if (begins(f->name, inlined[i]))
			return true;
	return f->kind == FRAME_KERNEL;
}

u32 lock_kind__code(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;
	u32 package = 0, python = 0, native = 0;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL; at = f->caller) {
		if (stack_frame__is_users(f) && !stack_frame__is_package(f))
			return at;
		if (stack_frame__is_users(f))
			package = package ? package : at;
		else if (f->kind == FRAME_PYTHON)
			python = python ? python : at;
		else if (!native && f->kind == FRAME_NATIVE && !is_mechanism(f))
			native = at;
	}
	return package ? package : python ? python : native;
}
