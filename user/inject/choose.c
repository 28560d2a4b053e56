// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses among a process's threads. A sleeping thread is the best one: no other thread waits for it, and its system
 * call shows that it holds no lock of libc. The main thread comes first, because other threads may be bound to a CPU,
 * or may serve only CUDA. Running threads come last. A thread is stopped only while its stack is examined. If no
 * thread is suitable, all are examined again a little later.
 */
#include "inject/choose.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "inject/safe_point.h"
#include "inject/seccomp.h"
#include "process/procs.h"
#include "sandbox/privileges.h"
#include "util/compare.h"

#define ROUNDS	     100
#define PAUSE_NS     20000000 /* between two attempts: two seconds in all */
#define STOPPED_MS   200 /* for all requests about the files while a thread is stopped */
#define THREADS_MAX  256 /* examined per attempt */
#define NT_X86_SHSTK 0x204 /* linux/elf.h, from 6.6 on */
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

struct candidate {
	u32 tid;
	u32 rank; /* the candidate with the lowest rank is examined first */
};

COMPARE_BY(compare, struct candidate, ASCENDING(rank), ASCENDING(tid))

static u32 list(u32 pid, struct candidate *out)
{
	char path[64];
	struct dirent *d;
	u32 n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && n < THREADS_MAX && (d = readdir(dir))) {
		u32 tid = (u32)strtoul(d->d_name, NULL, 10);
		int policy = tid ? sched_getscheduler((pid_t)tid) : 0;
		char state = tid ? procs__state(tid) : 'Z';

		/* a thread in state D stops only when its wait ends */
		if (!tid || (state != 'S' && state != 'R' && state != 'I'))
			continue;
		/* a thread with a real-time priority comes late: the library's own thread would inherit it */
		out[n++] = (struct candidate){ tid, (state == 'R') * 2 + (tid != pid) +
							    4 * (policy != SCHED_OTHER && policy != SCHED_BATCH &&
								 policy != SCHED_IDLE) };
	}
	if (dir)
		closedir(dir);
	qsort(out, n, sizeof(*out), compare);
	return n;
}

/* With a shadow stack, the return to an address without a matching call faults. */
static bool has_shadow_stack(const struct tracee *t)
{
	u64 pointer = 0;
	struct iovec v = { &pointer, sizeof(pointer) };

	return !ptrace(PTRACE_GETREGSET, (pid_t)t->tid, NT_X86_SHSTK, &v) && pointer;
}

struct rseq_configuration {
	u64 address;
	u32 size, signature, flags, pad;
};

/* In a restartable sequence (rseq(2)): a call from there would abort the sequence. */
static bool in_rseq(struct space *s, const struct tracee *t)
{
	struct rseq_configuration c = {};
	u64 section = 0, range[2]; /* start_ip, post_commit_offset, after two u32 */

	if (syscall(SYS_ptrace, PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(c), &c) <= 0 || !c.address)
		return false;
	if (!space__copy(s, c.address + 8, &section, sizeof(section)) || !section ||
	    !space__copy(s, section + 8, range, sizeof(range)))
		return false;
	return tracee__pc(t) - range[0] < range[1];
}

/*
 * Returns 0 if the thread is suitable; -EAGAIN: not now, -ENOTSUP: never, with the reason; -EPERM: no thread may be
 * interrupted.
 */
static int examine(struct space *s, struct tracee *t, u32 tid, bool force, char *why, size_t len)
{
	int err = tracee__seize(t, s->pid, tid);
	char refusal[400];

	/* the kernel also returns EPERM for a thread that is ending; strchr() also finds 0, of one that is gone */
	if (err == -EPERM && strchr("ZX", procs__state(tid)))
		err = -ESRCH;
	if (err == -EPERM || err == -EACCES) {
		snprintf(why, len, "its threads may not be interrupted (ptrace): %s",
			 privileges__refusal(refusal, sizeof(refusal)));
		return -EPERM;
	}
	/* the thread stays traced until this process ends, so no other thread is tried */
	if (err == -ETIMEDOUT) {
		snprintf(why, len, "thread %u does not stop: it is in the kernel, or its cgroup is frozen", tid);
		return -ENOTSUP;
	}
	if (err) {
		snprintf(why, len, "thread %u could not be interrupted: %s", tid, strerror(-err));
		return -EAGAIN;
	}
	/* from here on an exec is reported by ptrace; an earlier one has replaced the mappings that were read */
	if (!space__is_current(s, tid)) {
		snprintf(why, len, "it executed another program while it was examined; try again");
		return -ENOTSUP;
	}
	if (has_shadow_stack(t)) {
		snprintf(why, len, "it has a shadow stack (CET), so that sonde can't make it call a function");
		return -ENOTSUP;
	}
	if (in_rseq(s, t)) {
		snprintf(why, len, "thread %u is in a restartable sequence", tid);
		return -EAGAIN;
	}
	space__limit(s, STOPPED_MS);
	if (!safe_point__is_safe(s, t, why, len))
		return -EAGAIN;
	err = seccomp__check(t, why, len);
	return err == -EACCES && force ? 0 : err ? -ENOTSUP : 0;
}

static void release_thread(struct tracee *t, struct inject_result *r)
{
	tracee__release(t);
	r->stopped_ns = t->stopped_ns > r->stopped_ns ? t->stopped_ns : r->stopped_ns;
}

int choose__thread(struct space *s, struct tracee *t, bool force, struct inject_result *r)
{
	static struct candidate threads[THREADS_MAX];

	snprintf(r->why, sizeof(r->why), "none of its threads is asleep or running");
	for (u32 round = 0; round < ROUNDS; round++) {
		u32 n = list(s->pid, threads);

		for (u32 i = 0; i < n; i++) {
			int err = examine(s, t, threads[i].tid, force, r->why, sizeof(r->why));

			r->tried++;
			if (!err)
				return 0;
			release_thread(t, r);
			if (err != -EAGAIN)
				return err;
		}
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	return -EAGAIN;
}
