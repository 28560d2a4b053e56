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
	const char *text; /* Rust: a part, native: the start of the function's name; Python: end of the file's path */
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

/* Parts of mangled names in the Java virtual machine, of which threads wait in a condition for each of its locks. */
static const struct rule java_rules[] = {
	{ "ObjectMonitor5enter", NULL, LOCK_KIND_MUTEX },
	{ "ObjectMonitor6EnterI", NULL, LOCK_KIND_MUTEX },
	{ "ObjectMonitor7ReenterI", NULL, LOCK_KIND_MUTEX },
	{ "ObjectMonitor4wait", NULL, LOCK_KIND_CONDITION },
};

/* Objects whose functions implement waits: the code that waits is the one that calls them. */
static const char *const mechanisms[] = { "libc.so", "libc-2.",	  "libpthread", "ld-linux", "ld-musl", "libstdc++",
					  "libc++",  "libpython", "python",	"[vdso]",   "_queue.", "libgcc_s" };

/* Objects of OpenMP: a thread waits in them for the others of its team, or for the next part of a loop to run. */
static const char *const openmp[] = { "libgomp", "libiomp5", "libomp." };

/* Functions of the C++ library that are compiled into the program, and of the Java virtual machine */
static const char *const inlined[] = {
	"std::",     "_ZNSt",	      "_ZNKSt",	    "_ZSt",	  "__gthread",
	"__gnu_cxx", "_ZN9__gnu_cxx", "void std::", "bool std::", "_ZN2os13PlatformEvent"
};

/* Parts of mangled names in Rust's standard library, which uses futexes without the C library. */
static const struct rule rust_rules[] = {
	{ "Mutex14lock_contended", NULL, LOCK_KIND_MUTEX },
	{ "RwLock14read_contended", NULL, LOCK_KIND_MUTEX },
	{ "RwLock15write_contended", NULL, LOCK_KIND_MUTEX },
	{ "7Condvar", NULL, LOCK_KIND_CONDITION },
};

/* Does the name end in 17h, 16 digits and E? Only this distinguishes Rust's older mangling from that of C++. */
static bool has_rust_hash(const char *name)
{
	const char *end = strrchr(name, 'E'); /* ".llvm.123" may follow */

	return end && end - name > 19 && path__begins_with(end - 19, "17h") &&
	       strspn(end - 16, "0123456789abcdef") == 16;
}

/* Is the function of Rust's standard library: _ZN3std.., or _R.., in which the first crate is "std" and so on? */
static bool is_rust_library(const char *name)
{
	static const char *const crates[] = { "3std", "4core", "5alloc" };
	const char *at = NULL;

	if (path__begins_with(name, "_ZN") && has_rust_hash(name))
		at = name + 3;
	else if (path__begins_with(name, "_R") && (at = strstr(name, "Cs")) != NULL && (at = strchr(at, '_')) != NULL)
		at++;
	for (size_t i = 0; at && i < ARRAY_LEN(crates); i++)
		if (path__begins_with(at, crates[i]))
			return true;
	return false;
}

static bool is_in_one_of(const struct stack_frame *f, const char *const *objects, size_t n)
{
	const char *name = path__file_name(f->file);

	for (size_t i = 0; i < n; i++)
		if (path__begins_with(name, objects[i]))
			return true;
	return false;
}

static enum lock_kind of_native(const struct stack_frame *f)
{
	if (is_in_one_of(f, openmp, ARRAY_LEN(openmp)))
		return LOCK_KIND_BARRIER;
	for (size_t i = 0; is_rust_library(f->symbol) && i < ARRAY_LEN(rust_rules); i++)
		if (strstr(f->symbol, rust_rules[i].text))
			return rust_rules[i].kind;
	if (path__begins_with(path__file_name(f->file), "_queue."))
		return LOCK_KIND_QUEUE;
	for (size_t i = 0; i < ARRAY_LEN(native_rules); i++)
		if (path__begins_with(f->symbol, native_rules[i].text))
			return native_rules[i].kind;
	return LOCK_KIND_UNKNOWN;
}

static enum lock_kind of_python(const struct stack_frame *f)
{
	/* newer Pythons have qualified names: Condition.wait */
	const char *dot = strrchr(f->symbol, '.'), *name = dot ? dot + 1 : f->symbol;

	for (size_t i = 0; i < ARRAY_LEN(python_rules); i++) {
		if (!path__ends_with(f->file, python_rules[i].text) || strcmp(name, python_rules[i].function) != 0)
			continue;
		return path__begins_with(f->symbol, "Event.")	? LOCK_KIND_EVENT :
		       path__begins_with(f->symbol, "Barrier.") ? LOCK_KIND_BARRIER :
								  python_rules[i].kind;
	}
	return LOCK_KIND_UNKNOWN;
}

/* Adds a frame further out: the innermost match decides, but for a condition in which Java waits for a lock. */
static enum lock_kind add_native(enum lock_kind kind, const struct stack_frame *f)
{
	if (!kind)
		return of_native(f);
	for (size_t i = 0; kind == LOCK_KIND_CONDITION && i < ARRAY_LEN(java_rules); i++)
		if (strstr(f->symbol, java_rules[i].text))
			return java_rules[i].kind;
	return kind;
}

bool lock_kind__is_mechanism(const struct stack_frame *f)
{
	if (is_in_one_of(f, mechanisms, ARRAY_LEN(mechanisms)) || is_in_one_of(f, openmp, ARRAY_LEN(openmp)))
		return true;
	if (!strcmp(f->symbol, "[vdso]"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(inlined); i++)
		if (path__begins_with(f->symbol, inlined[i]))
			return true;
	/* a header of the C++ library, as /usr/include/c++/12/bits/std_mutex.h */
	return f->kind == FRAME_KERNEL || is_rust_library(f->symbol) || strstr(f->source, "/c++/");
}

bool lock_kind__is_idle_in_openmp(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;
	bool is = false;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL; at = f->caller) {
		if (!lock_kind__is_mechanism(f))
			return false;
		is = is || is_in_one_of(f, openmp, ARRAY_LEN(openmp));
	}
	return is;
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
		} else if (!has_python) {
			is_semaphore = is_semaphore || (!kind && path__begins_with(f->symbol, "sem_"));
			kind = add_native(kind, f);
		}
	}
	if (kind == LOCK_KIND_BARRIER && lock_kind__is_idle_in_openmp(s, stack))
		return LOCK_KIND_QUEUE;
	if (kind)
		return kind;
	/* Python's own locks are semaphores or, from 3.13 on, futexes */
	return has_python ? LOCK_KIND_MUTEX : is_semaphore ? LOCK_KIND_SEMAPHORE : LOCK_KIND_UNKNOWN;
}

bool lock_kind__is_native_lock(const struct stacks *s, u32 stack)
{
	enum lock_kind kind = LOCK_KIND_UNKNOWN;
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL && f->kind == FRAME_NATIVE; at = f->caller)
		kind = add_native(kind, f);
	return kind == LOCK_KIND_MUTEX;
}

bool lock_kind__is_send(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL && f->kind == FRAME_NATIVE; at = f->caller)
		if (is_rust_library(f->symbol) && strstr(f->symbol, "4mpmc") && strstr(f->symbol, "4send"))
			return true;
	return false;
}

const char *lock_kind__text(enum lock_kind kind)
{
	return texts[kind < LOCK_KINDS ? kind : LOCK_KIND_UNKNOWN];
}

u32 lock_kind__code(const struct stacks *s, u32 stack)
{
	const struct stack_frame *f;
	u32 package = 0, python = 0, script = 0, native = 0;

	for (u32 at = stack; (f = stacks__frame(s, at)) != NULL; at = f->caller) {
		if (stack_frame__is_own(f))
			return at;
		if (stack_frame__is_users(f))
			package = package ? package : at;
		else if (f->kind == FRAME_PYTHON)
			python = python ? python : at;
		else if (stack_frame__is_script(f))
			script = script ? script : at;
		else if (!native && f->kind == FRAME_NATIVE && !lock_kind__is_mechanism(f))
			native = at;
	}
	return package ? package : python ? python : script ? script : native;
}
