// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/usage.h"

#include "util/timing.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Processes at once: the attacher, 16 openers, 16 readers of tasks, two servers and their children. */
#define PROCESSES_MAX 256

struct usage {
	u64 ended_ns; /* of processes that have ended */
	s32 pids[PROCESSES_MAX]; /* 0: free */
};

static struct usage *shared;

void usage__open(void)
{
	if (shared)
		return;
	/* cppcheck-suppress invalidFunctionArg */
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		shared = NULL;
}

void usage__forget(void)
{
	if (shared)
		munmap(shared, sizeof(*shared));
	shared = NULL;
}

/* CPU time of a process with its threads; 0: there is no such process. */
static u64 clock_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : timing__clock(clock);
}

/* Several processes may fork at the same time. */
static void replace(s32 from, s32 to)
{
	for (u32 i = 0; i < PROCESSES_MAX; i++) {
		s32 expected = from;

		if (__atomic_compare_exchange_n(&shared->pids[i], &expected, to, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

pid_t usage__fork(void)
{
	pid_t pid = fork();

	if (pid > 0 && shared)
		replace(0, pid);
	return pid;
}

/* Waits for the next child, and reads its CPU clock while that is possible. 0: no child has ended. */
static pid_t wait_child(pid_t pid, int options)
{
	siginfo_t info = {};

	while (waitid(pid > 0 ? P_PID : P_ALL, pid > 0 ? (id_t)pid : 0, &info, WEXITED | WNOWAIT | (options & WNOHANG)))
		if (errno != EINTR)
			return -1;
	return info.si_pid;
}

pid_t usage__wait(pid_t pid, int *status, int options)
{
	pid_t child = shared ? wait_child(pid, options) : pid;
	u64 ns;

	if (!shared)
		return waitpid(pid, status, options);
	if (child <= 0)
		return child;
	ns = clock_of(child);
	child = waitpid(child, status, options);
	if (child > 0) {
		/* its clock can't be read any more: until the addition below a sum lacks its time */
		__atomic_fetch_add(&shared->ended_ns, ns, __ATOMIC_RELAXED);
		replace(child, 0);
	}
	return child;
}

u64 usage__ns(void)
{
	u64 ns = shared ? __atomic_load_n(&shared->ended_ns, __ATOMIC_RELAXED) : 0;

	for (u32 i = 0; shared && i < PROCESSES_MAX; i++) {
		s32 pid = __atomic_load_n(&shared->pids[i], __ATOMIC_RELAXED);

		if (pid > 0)
			ns += clock_of(pid);
	}
	return ns;
}

u64 usage__total_ns(void)
{
	return timing__clock(CLOCK_PROCESS_CPUTIME_ID) + usage__ns();
}
