// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The shim's only thread. Without a tracer it reads a few semaphores once a second, or when a tracer wakes it, and does
 * nothing else: it makes no call of CUPTI and has no subscription. While a tracer asks for records it makes CUPTI
 * return its buffers ten times a second, and hands over their contents.
 *
 * A tracer can't wake the thread by the semaphores: the kernel writes them in the process's own copy of their page. So
 * the thread waits at the first word of the shim's file, which nothing writes, as a futex: the kernel identifies it by
 * the file, and a tracer that maps the file wakes all processes with it (attach/semaphores.c). Any other program can
 * do that, too, so for some ms after it was woken the thread waits elsewhere.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "functions.h"
#include "lanes.h"
#include "nvtx.h"
#include "shim.h"
#include "torch.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * At first after 1, 2, 4 ms ..: a tracer comes either when the library is loaded or much later. So it is after the
 * thread was woken, up to WOKEN_MS: the requests for a tracer's families come one after the other.
 */
#define DORMANT_MS	 1000
#define WOKEN_MS	 16
#define ACTIVE_MS	 100
#define DORMANT_SLACK_NS 50000000UL
#define RETRY_MS	 10000 /* after another profiler was using CUPTI */
#define LOCK_MS		 100
#define STACK_BYTES	 (1 << 20) /* for CUPTI's calls, too */
#define EXIT_MS		 3000
#define INHERITED_NS	 2000000000ULL /* for which a forked child goes on recording until a tracer requests it */

SHIM_EXPORT int InitializeInjection(void);
/* by the linker: the begin of the file */
extern const uint32_t __ehdr_start[] __attribute__((visibility("hidden")));

static struct {
	pthread_mutex_t lock; /* protects CUPTI, clock, names and batch */
	struct activities activities;
	bool active;
	struct control_changes changes; /* the changes that were handled */
	uint64_t retry, retry_after; /* CLOCK_MONOTONIC, ns */
	bool impaired; /* this has been reported */
	long look_ms;
	int reported; /* enum gpu_shim_state that was reported last and is not repeated */
	bool thread, ending;
	bool has_cuda; /* a child of a fork can't use CUDA then */
	/* LD_PRELOAD has brought it into a program without Python and PyTorch: no thread unless CUDA or NVTX calls */
	bool is_bystander;
	uint32_t requested; /* groups, at the last step */
	uint32_t inherited; /* groups that were requested of the parent as it forked */
	uint64_t inherited_until; /* CLOCK_MONOTONIC, ns */
	bool awaits_cuda; /* CUDA will load the shim itself, and CUPTI is not called before */
	sem_t wake, ended;
} shim = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t shim__setting(const char *name, uint64_t def)
{
	const char *p = getenv(name);
	uint64_t n = 0;

	if (!p || *p < '0' || *p > '9')
		return def;
	for (; *p >= '0' && *p <= '9' && n < 1000000000; p++)
		n = n * 10 + *p - '0';
	return n;
}

static void report_state(enum gpu_shim_state state, const char *text)
{
	struct shim_state *s = out__record_text(SHIM_STATE, sizeof(*s), 0, shim__now(), text);

	s->told = out__handed_over();
	s->version = shim.activities.cupti.version;
	s->state = state;
	s->groups = shim.activities.enabled;
	out__flush();
}

/* Reports a state once, until other groups are requested. */
static void report_once(enum gpu_shim_state state, const char *text, bool again)
{
	if (again || shim.reported != (int)state)
		report_state(state, text);
	shim.reported = state;
}

static void start(uint32_t requested, bool changed)
{
	struct activities *a = &shim.activities;
	int err;

	if (!changed && shim__now() < shim.retry)
		return;
	out__reset();
	err = activities__start(a);
	if (err == -EAGAIN) {
		report_once(GPU_SHIM_WAITING, "libcuda is not loaded", changed);
		return;
	}
	if (err) {
		shim.retry = shim__now() + shim.retry_after;
		report_once(GPU_SHIM_REFUSED, a->why, changed);
		return;
	}
	shim.has_cuda = true;
	activities__set(a, requested);
	/* that took a while: what has been requested meanwhile is reported by the state below, too */
	activities__set(a, control__requested(&shim.changes));
	shim.active = true;
	report_state(GPU_SHIM_STARTED, a->why);
	shim.reported = 0;
	a->refused = 0;
	shim.impaired = false;
	names__report_all();
	out__flush();
}

static void stop(void)
{
	activities__stop(&shim.activities);
	shim.active = false;
	report_state(GPU_SHIM_STOPPED, shim.activities.why);
}

/* Reports once what CUPTI refuses after a successful start. */
static void report_refused(void)
{
	if (!shim.activities.refused || shim.impaired)
		return;
	report_state(GPU_SHIM_IMPAIRED, shim.activities.why);
	shim.impaired = true;
}

static void step(void)
{
	struct activities *a = &shim.activities;
	struct control_changes changes;
	uint32_t requested = control__requested(&changes);
	bool came = changes.arrivals != shim.changes.arrivals, left = changes.departures != shim.changes.departures;

	shim.changes = changes;
	/* the tracer of a forked child's parent needs a moment to find the child */
	if (shim__now() < shim.inherited_until)
		requested |= shim.inherited;
	shim.requested = requested;
	nvtx__step(requested, came, left);
	functions__step(requested, came, left);
	torch__step(requested, came, left);
	lanes__reclaim();
	requested &= SHIM_CUPTI_GROUPS;
	if (shim.awaits_cuda)
		return;
	if (!shim.active) {
		if (requested)
			start(requested, came);
		return;
	}
	if (!requested) {
		stop();
		return;
	}
	if (came) {
		report_state(GPU_SHIM_STARTED, a->why);
		names__report_all();
	}
	/* a tracer that has left waits for the records until then */
	activities__flush(a, left);
	if (left)
		report_state(GPU_SHIM_LEFT, "");
	activities__set(a, requested);
	report_refused();
}

static bool is_active(void)
{
	return shim.active || nvtx__is_active() || functions__is_busy() || torch__is_busy();
}

static void sleep_ms(long ms)
{
	struct timespec t = shim__in_ms(ms);

	prctl(PR_SET_TIMERSLACK, 0);
	sem_timedwait(&shim.wake, &t);
}

/* Returns whether a tracer has woken the thread. */
static bool sleep_dormant(void)
{
	struct timespec t = { .tv_sec = shim.look_ms / 1000, .tv_nsec = shim.look_ms % 1000 * 1000000 };
	uint32_t word;

	memcpy(&word, ELFMAG, sizeof(word));
	/* the check may be delayed if that saves the machine a wake-up */
	prctl(PR_SET_TIMERSLACK, DORMANT_SLACK_NS);
	if (!syscall(SYS_futex, __ehdr_start, FUTEX_WAIT, word, &t, NULL, 0))
		return true;
	/* not on this kernel */
	if (errno != ETIMEDOUT && errno != EINTR)
		sleep_ms(shim.look_ms);
	return false;
}

static void *run(void *arg)
{
	long ms, first = 1, longest = shim.look_ms; /* ms */

	prctl(PR_SET_NAME, "sonde-cupti");
	while (!shim.ending) {
		pthread_mutex_lock(&shim.lock);
		step();
		ms = is_active() ? ACTIVE_MS : longest;
		pthread_mutex_unlock(&shim.lock);
		if (first < ms) {
			sleep_ms(first);
			first *= 2;
		} else if (is_active()) {
			sleep_ms(ms);
		} else if (sleep_dormant()) {
			first = 1;
			longest = WOKEN_MS;
		}
	}
	pthread_mutex_lock(&shim.lock);
	nvtx__stop();
	functions__end();
	torch__end();
	if (shim.active)
		stop();
	pthread_mutex_unlock(&shim.lock);
	sem_post(&shim.ended);
	return NULL;
}

/* pthread_sigmask was in libpthread before glibc 2.32. */
static void set_signals(const sigset_t *mask, sigset_t *before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, 8);
}

/* Starts the thread with all signals blocked, so that it never runs the target's handlers. */
static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (shim.thread || pthread_attr_init(&attr))
		return;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	set_signals(&all, &before);
	shim.thread = !pthread_create(&thread, &attr, run, NULL);
	set_signals(&before, NULL);
	pthread_attr_destroy(&attr);
}

/* The thread fetches the last records; a CUPTI that hangs does not keep the process from ending. */
static void at_exit(void)
{
	struct timespec t;

	/* the handler is registered twice, and what did not end in time the first time will not the second time */
	if (shim.ending)
		return;
	shim.ending = true;
	if (!shim.thread) {
		nvtx__stop();
		functions__end();
		torch__end();
		return;
	}
	if (!is_active())
		return;
	sem_post(&shim.wake);
	t = shim__in_ms(EXIT_MS);
	while (sem_timedwait(&shim.ended, &t) && errno == EINTR)
		;
}

/*
 * CUPTI, CUDA and the thread belong to the parent; their state here is of no use. The child of a process that uses
 * CUDA can't use it, so no thread is started.
 */
static void in_child(void)
{
	pthread_mutex_init(&shim.lock, NULL);
	sem_init(&shim.wake, 0, 0);
	sem_init(&shim.ended, 0, 0);
	shim.active = shim.thread = shim.ending = false;
	memset(&shim.changes, 0, sizeof(shim.changes));
	shim.retry = 0;
	shim.reported = 0;
	memset(&shim.activities, 0, sizeof(shim.activities));
	buffers__after_fork();
	out__reset();
	names__reset();
	lanes__after_fork();
	shim.inherited = shim.requested & ~SHIM_CUPTI_GROUPS;
	shim.inherited_until = shim__now() + INHERITED_NS;
	nvtx__after_fork(shim.inherited);
	functions__after_fork(shim.inherited);
	/* without a thread nothing would remove the callbacks at the end */
	torch__after_fork(shim.has_cuda || shim.is_bystander ? 0 : shim.inherited);
	control__after_fork();
	if (!shim.has_cuda && !shim.is_bystander)
		start_thread();
}

static bool comes_by_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");

	return path && strstr(path, "libsonde-cupti");
}

/* With LD_PRELOAD or dlopen this is the only call; with CUDA's injection, InitializeInjection follows. */
/* An older glibc has these in libraries that this process may lack; then it can't use CUDA either. */
static bool has_functions(void)
{
	return dlopen && dlsym && dlclose && dlinfo && pthread_create && pthread_attr_setstacksize &&
	       pthread_mutex_trylock && sem_init && sem_post && sem_timedwait;
}

static __attribute__((constructor)) void loaded(void)
{
	bool is_preloaded = getenv("SONDE_FUNCTIONS"); /* by the program's LD_PRELOAD, before CUDA loads the shim */

	if (!has_functions())
		return;
	sem_init(&shim.wake, 0, 0);
	sem_init(&shim.ended, 0, 0);
	/* both for tests */
	shim.look_ms = shim__setting("SONDE_CUPTI_LOOK_MS", DORMANT_MS);
	shim.retry_after = shim__setting("SONDE_CUPTI_RETRY_MS", RETRY_MS) * 1000000;
	control__init();
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	shim.awaits_cuda = comes_by_injection();
	shim.is_bystander = is_preloaded && !functions__is_launched() && !torch_find__is_loaded();
	if (functions__is_command())
		shim__await(SHIM_FUNCTIONS);
	else if ((!shim.awaits_cuda || is_preloaded) && !shim.is_bystander)
		start_thread();
}

/* A tracer that has just started this program (SONDE_CUPTI_WAIT, ms) gets a moment to request a group of records. */
static void wait_for(enum shim_group group)
{
	uint64_t ms = shim__setting("SONDE_CUPTI_WAIT", 0);
	struct control_changes changes;

	for (; ms && ms <= 1000 && !(control__requested(&changes) >> group & 1); ms--)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

void shim__await(enum shim_group group)
{
	wait_for(group);
	if (!pthread_mutex_trylock(&shim.lock)) {
		step();
		pthread_mutex_unlock(&shim.lock);
	}
	start_thread();
}

/* A step of the shim's thread takes less than a millisecond until CUPTI is called. */
static bool lock_soon(void)
{
	for (int ms = 0; ms < LOCK_MS; ms++) {
		if (!pthread_mutex_trylock(&shim.lock))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

/*
 * CUDA calls this during cuInit. The first kernel is recorded, too. CUPTI is called by this thread, because another one
 * might wait for a lock that this one holds.
 */
int InitializeInjection(void)
{
	bool is_locked;

	shim.has_cuda = true;
	/* a tracer requests kernels last */
	wait_for(SHIM_KERNELS);
	is_locked = lock_soon();
	shim.awaits_cuda = false;
	if (is_locked) {
		shim.activities.in_init = true;
		step();
		shim.activities.in_init = false;
		pthread_mutex_unlock(&shim.lock);
	}
	/* registered again: the handler that is registered last is called first, before CUDA's own */
	atexit(at_exit);
	start_thread();
	return 1;
}
