// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The checks before loading, and the child that does the loading: when the child ends for any reason, the kernel
 * releases every thread that it has stopped.
 */
#include "inject/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/check.h"
#include "inject/load.h"
#include "process/procs.h"
#include "sandbox/bounded.h"
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "util/lock.h"
#include "util/signals.h"

#define LIBRARY	 "libsonde-cupti.so"
#define VARIABLE "CUDA_INJECTION64_PATH"
/* number of checks whether another sonde is done: ten seconds in all */
#define OTHERS	  500
#define OTHERS_NS 20000000
/* The sum of all the time limits inside the child is lower. */
#define CHILD_MS 60000
#define POLL_MS	 50 /* interval of checks whether the caller is stopped */
#define QUIET_MS 1000 /* time until the caller's waiting() is called */
#define KILLED	 50 /* number of checks whether a killed child has ended: a second in all */
#define WAIT_NS	 1000000

static bool is_mapped(struct space *s, const char *a, const char *b)
{
	return space__library(s, a) || (b && space__library(s, b));
}

/* Checks everything that can be checked without stopping the process. Returns 0 or -ENOTSUP with the reason. */
static int examine(struct space *s, const char *shim, struct inject_status *out)
{
	out->has_shim = is_mapped(s, LIBRARY, NULL);
	out->cuda = is_mapped(s, "libcuda.so", "libcudart.so");
	out->cupti = is_mapped(s, "libcupti.so", NULL);
	check__environment(s->pid, VARIABLE, out->injection, sizeof(out->injection));
	if (out->has_shim)
		return 0;
	if (strstr(out->injection, "libsonde-cupti")) {
		snprintf(
			out->why, sizeof(out->why),
			VARIABLE
			" names the shim, which CUDA loads when it is initialized; CUDA was not initialized yet, or could not find %s",
			out->injection);
		return -ENOTSUP;
	}
	return check__libraries(s, shim, out->why, sizeof(out->why));
}

static int open_space(struct space *s, u32 pid, char *why, size_t len)
{
	char refusal[512];
	int err = space__read(s, pid);

	if (!err && s->n)
		return 0;
	/* an empty list: the process has ended, or only its user may read it */
	if (err == -ENOENT || err == -ESRCH)
		snprintf(why, len, "there is no such process");
	else if (err == -ETIMEDOUT)
		snprintf(why, len, "its mappings can't be read: " BOUNDED_LATE);
	else
		snprintf(why, len, "its memory can't be read: %s; %s", err ? strerror(-err) : "not allowed",
			 privileges__refusal(refusal, sizeof(refusal)));
	return err == -ENOENT || err == -ESRCH ? -ESRCH : -ENOTSUP;
}

int inject__examine(u32 pid, const char *shim, bool remote_files, struct inject_status *out)
{
	struct space s = SPACE_NONE;
	int err;

	s.remote_files = remote_files;
	memset(out, 0, sizeof(*out));
	err = check__process(pid, remote_files, out->why, sizeof(out->why));
	if (err == -ESRCH)
		return err;
	/* its libraries are reported even if nothing can be loaded */
	if (!open_space(&s, pid, out->why, err ? 0 : sizeof(out->why))) {
		char why[sizeof(out->why)];

		snprintf(why, sizeof(why), "%s", out->why);
		out->possible = !examine(&s, shim, out) && !err;
		if (err)
			snprintf(out->why, sizeof(out->why), "%s", why);
	}
	space__free(&s);
	return 0;
}

/*
 * Does /proc show this process's pid namespace? With that of another, a pid would be checked as one process, and
 * stopped as another.
 */
static bool proc_is_ours(void)
{
	char link[32] = "";

	return readlink("/proc/self", link, sizeof(link) - 1) > 0 && strtoul(link, NULL, 10) == (unsigned long)getpid();
}

/*
 * Takes the lock for loading into this process: on roots, sonde's lock file, to which only root has access, or on own,
 * a file of the process, which only root and the process's user can open. Negative: not used.
 */
static bool take_turn(int roots, int own, u32 pid)
{
	return roots >= 0 ? lock__take(roots, LOCK_INJECT + pid) : own < 0 || !flock(own, LOCK_EX | LOCK_NB);
}

/*
 * One loader at a time: the others wait, and find the library loaded. The lock ends with this process.
 * /proc/PID/status can't be used for locking, because any user can lock it and so block root.
 */
static void wait_for_others(u32 pid)
{
	int roots = lock__open(), own = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	/* root does not use this lock, even if it can't open the lock file: the process's user could hold it */
	if (geteuid())
		own = open(path, O_RDONLY | O_CLOEXEC);
	for (u32 i = 0; i < OTHERS && !take_turn(roots, own, pid); i++)
		nanosleep(&(struct timespec){ .tv_nsec = OTHERS_NS }, NULL);
}

/* Has one of its threads a seccomp filter? Only a process without a filter of its own may read it. */
static bool has_filter(u32 pid)
{
	char path[64];
	bool has = false;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && !has && (d = readdir(dir)))
		has = procs__status((u32)strtoul(d->d_name, NULL, 10), "Seccomp: %llu") == 2;
	if (dir)
		closedir(dir);
	return has;
}

/* Runs in the child. */
static void inject(struct space *s, u32 pid, const char *shim, const struct inject_options *options,
		   struct inject_result *r)
{
	struct inject_status status = {};
	int err;

	r->outcome = INJECT_REFUSED;
	if (!proc_is_ours()) {
		snprintf(
			r->why, sizeof(r->why),
			"/proc is of another pid namespace, in which this number is that of another process; run sonde in that namespace "
			"(docker run --pid=host, nsenter -t 1 -p), or mount its own /proc");
		return;
	}
	wait_for_others(pid);
	if (!has_filter(pid) && privileges__filter_injector()) {
		snprintf(r->why, sizeof(r->why), INJECT_NO_ROOM);
		return;
	}
	err = check__process(pid, options->remote_files, r->why, sizeof(r->why));
	if (!err)
		err = open_space(s, pid, r->why, sizeof(r->why));
	if (!err && s->pidfd < 0) {
		snprintf(r->why, sizeof(r->why),
			 "the kernel can't open a pidfd of it (pidfd_open), which needs Linux 5.3 or newer");
		err = -ENOTSUP;
	}
	if (!err) {
		space__limit(s, LOAD_FILES_MS);
		err = examine(s, shim, &status);
		snprintf(r->why, sizeof(r->why), "%s", status.why);
		r->cuda = status.cuda;
	}
	if (!err && status.has_shim)
		r->outcome = INJECT_ALREADY;
	else if (!err)
		load__shim(s, shim, options, r);
	if (options->functions && (r->outcome == INJECT_DONE || r->outcome == INJECT_ALREADY) &&
	    !configure__functions(pid, s->memory, options->functions, r->why, sizeof(r->why)))
		r->outcome = INJECT_FAILED;
}

static void run_child(int out, u32 pid, const char *shim, const struct inject_options *options)
{
	static struct inject_result r;
	struct space s = SPACE_NONE;

	s.remote_files = options->remote_files;
	prctl(PR_SET_NAME, "sonde-inject");
	/* a signal to sonde's process group (timeout -s KILL) must not kill the child while it has stopped a thread */
	setsid();
	signals__end_after(CHILD_MS / 1000 + 1);
	space__open(&s, pid);
	if (privileges__injector(false))
		_exit(1);
	inject(&s, pid, shim, options, &r);
	space__free(&s);
	r.refused = syscalls__refused();
	_exit(write(out, &r, sizeof(r)) == sizeof(r) ? 0 : 1);
}

/* Returns 0, -ETIMEDOUT, or -EINTR if the caller is stopped. */
static int wait_for_result(int end, u32 pid, const struct inject_options *options)
{
	struct pollfd readable = { .fd = end, .events = POLLIN };

	for (u32 ms = 0; ms < CHILD_MS; ms += POLL_MS) {
		if (poll(&readable, 1, POLL_MS) > 0)
			return 0;
		if (options->stopped && options->stopped())
			return -EINTR;
		if (ms == QUIET_MS && options->waiting)
			options->waiting(pid);
	}
	return -ETIMEDOUT;
}

/*
 * Receives the child's result. A target can make the child wait forever (for memory behind userfaultfd or FUSE): it
 * is then killed, and abandoned if even that takes long. If the caller is stopped, the child is neither killed nor
 * awaited, because it may have stopped a thread.
 */
static ssize_t wait_for_child(pid_t child, int end, u32 pid, const struct inject_options *options, int *status,
			      struct inject_result *out)
{
	ssize_t n = wait_for_result(end, pid, options);

	if (n == -EINTR)
		return n;
	if (!n)
		n = read(end, out, sizeof(*out));
	else
		kill(child, SIGKILL);
	for (u32 i = 0; !waitpid(child, status, WNOHANG) && (n >= 0 || i < KILLED); i++)
		nanosleep(&(struct timespec){ .tv_nsec = n >= 0 ? WAIT_NS : OTHERS_NS }, NULL);
	return n;
}

/* The child has read untrusted data, so its result is checked like any untrusted input. */
static void check_result(struct inject_result *r)
{
	char name[64];

	r->why[sizeof(r->why) - 1] = '\0';
	if (r->outcome > INJECT_FAILED)
		r->outcome = INJECT_FAILED;
	if (r->refused < 0)
		return;
	r->outcome = INJECT_FAILED;
	snprintf(
		r->why, sizeof(r->why),
		"the filter of system calls refused %s to sonde's child that loads the library: a bug in sonde, or an attack by the "
		"process; the library may be loaded or not",
		syscalls__name(r->refused, name, sizeof(name)));
}

void inject__process(u32 pid, const char *shim, const struct inject_options *options, struct inject_result *out)
{
	sigset_t all, before;
	int ends[2], status = 0;
	ssize_t n = 0;
	pid_t child;

	*out = (struct inject_result){ .outcome = INJECT_FAILED };
	bounded__share();
	if (pipe2(ends, O_CLOEXEC)) {
		snprintf(out->why, sizeof(out->why), "cannot make a pipe: %s", strerror(errno));
		return;
	}
	/* the child starts with signals blocked: it must not be interrupted while it has stopped a thread */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (!child)
		run_child(ends[1], pid, shim, options);
	close(ends[1]);
	if (options->stopped)
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (child > 0)
		n = wait_for_child(child, ends[0], pid, options, &status, out);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[0]);
	if (child > 0 && n == sizeof(*out)) {
		check_result(out);
		return;
	}
	*out = (struct inject_result){ .outcome = INJECT_FAILED };
	if (n == -EINTR)
		snprintf(out->why, sizeof(out->why), "sonde was stopped meanwhile");
	else if (n == -ETIMEDOUT)
		snprintf(
			out->why, sizeof(out->why),
			"it took more than %d s and was abandoned: reading the process's memory or files may block forever",
			CHILD_MS / 1000);
	else
		snprintf(out->why, sizeof(out->why),
			 child < 0 ? "cannot fork" : "sonde's child that loads the library ended with status %#x",
			 status);
}
