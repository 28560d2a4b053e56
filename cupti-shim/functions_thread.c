// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The thread that asks for the GIL. It is a thread of its own: a program may keep the GIL for long, CPython ends a
 * thread that asks for it while the interpreter ends, and nothing of CUPTI may wait for that.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "functions.h"
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)
#define FAST_NS	    3000000000ULL /* at first, while a program imports its modules: */
#define FAST_MS	    5
#define START_MS    1 /* until the interpreter is initialized */
#define SEARCH_MS   100 /* some functions are missing */
#define CHECK_MS    1000 /* all are there; one may be replaced, and PyTorch may get new classes */
#define FORK_MS	    1000 /* until CPython has made its locks anew in the child of a fork */

static struct {
	pthread_mutex_t lock; /* protects `runs` and `requested` */
	bool runs;
	bool requested;
	sem_t wake;
	bool has_wake;
	bool is_forked; /* in a child whose thread has not run yet */
	uint32_t arrivals;
	/* only for the thread */
	uint32_t reported_to; /* `arrivals` when all states were reported */
	uint64_t fast_until;
	bool is_refused, is_waiting; /* this is reported */
} thread = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* One round while a tracer requests the family. Returns the ms until the next. */
static long trace(void)
{
	bool is_fast = shim__now() < thread.fast_until, missing;
	uint32_t arrivals = __atomic_load_n(&thread.arrivals, __ATOMIC_RELAXED);
	const char *why = "";
	int gil, err;

	if (thread.is_refused)
		return CHECK_MS;
	err = python__find(&why);
	if (err == -ENOTSUP || (err && !is_fast && !thread.is_waiting))
		functions__report_python(err == -ENOTSUP, why);
	thread.is_refused = err == -ENOTSUP;
	thread.is_waiting |= err && !is_fast;
	if (err)
		return is_fast ? START_MS : SEARCH_MS;
	if (!python__is_alive())
		return CHECK_MS;
	gil = python__enter();
	missing = functions__search(arrivals != thread.reported_to);
	python__leave(gil);
	thread.reported_to = arrivals;
	return !missing ? CHECK_MS : is_fast ? FAST_MS : SEARCH_MS;
}

static void undo(void)
{
	int gil;

	if (!python.is_known || !python__is_alive())
		return;
	gil = python__enter();
	functions__unset_all();
	python__leave(gil);
}

static void wait_ms(long ms)
{
	struct timespec t = shim__in_ms(ms);

	while (sem_timedwait(&thread.wake, &t) && errno == EINTR)
		;
}

static bool is_requested(void)
{
	bool is;

	pthread_mutex_lock(&thread.lock);
	is = thread.requested;
	pthread_mutex_unlock(&thread.lock);
	return is;
}

static void *run(void *arg)
{
	bool ends = false;

	prctl(PR_SET_NAME, "sonde-python");
	if (thread.is_forked)
		wait_ms(FORK_MS);
	thread.is_forked = thread.is_waiting = false;
	thread.fast_until = shim__now() + FAST_NS;
	while (!ends) {
		while (is_requested())
			wait_ms(trace());
		undo();
		pthread_mutex_lock(&thread.lock);
		ends = !thread.requested;
		thread.runs = !ends;
		if (ends)
			functions__stopped();
		pthread_mutex_unlock(&thread.lock);
	}
	return NULL;
}

/* With all signals blocked, so that it never runs the target's handlers. */
static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t id;
	sigset_t all, before;

	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
	thread.runs = !pthread_create(&id, &attr, run, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
	pthread_attr_destroy(&attr);
}

bool functions_thread__request(bool requested, bool came)
{
	bool runs;

	if (!thread.has_wake)
		thread.has_wake = !sem_init(&thread.wake, 0, 0);
	__atomic_fetch_add(&thread.arrivals, came, __ATOMIC_RELAXED);
	pthread_mutex_lock(&thread.lock);
	thread.requested = requested;
	if (requested && !thread.runs)
		start_thread();
	else if (thread.runs)
		sem_post(&thread.wake);
	runs = thread.runs;
	pthread_mutex_unlock(&thread.lock);
	return runs;
}

void functions_thread__after_fork(void)
{
	pthread_mutex_init(&thread.lock, NULL);
	thread.runs = thread.requested = thread.has_wake = false;
	thread.is_forked = true;
}
