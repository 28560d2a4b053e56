// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "inject/load_private.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/check.h"
#include "inject/choose.h"
#include "inject/safe_point.h"
#include "sandbox/privileges.h"
#include "util/array.h"

#define PRIORITY      (-15) /* nice */
#define TEXT_MAX      512
#define CALL_NS	      1000000000ULL
#define DLOPEN_NS     5000000000ULL /* time limit of dlopen, which waits for other threads that load libraries */
#define IMPATIENT_NS  1000000000ULL /* the same with `impatient` */
#define RTLD_DLOPEN_2 0x80000000U /* flag that __libc_dlopen_mode needs before 2.34 */
#define THREAD_NAME   "sonde-cupti" /* cupti-shim/shim.c */
#define CHECKS	      100 /* number of checks for the shim's thread: two seconds in all */
#define CHECK_NS      20000000

int load__call(struct load *l, u64 function, u64 a, u64 b, u64 c, u64 *result)
{
	u64 args[] = { a, b, c };

	return tracee__call(&l->t, function, args, 3, l->scratch ? l->scratch + SCRATCH : 0, CALL_NS, result);
}

int load__system_call(struct load *l, u64 number, u64 a, u64 b, u64 c, u64 *result)
{
	u64 args[] = { number, a, b, c };
	int err = tracee__call(&l->t, l->syscall, args, 4, l->scratch + SCRATCH, CALL_NS, result), reason;

	if (err || (s64)*result >= 0)
		return err;
	if (!space__copy(l->s, l->errno_at, &reason, sizeof(reason)) || reason <= 0 || reason >= 4096)
		return -EIO;
	/* these values already mean that the call could not be made */
	return reason == ESRCH || reason == EFAULT || reason == ETIMEDOUT ? -EIO : -reason;
}

static bool find_functions(struct load *l)
{
	struct code *libc = space__library(l->s, "libc.so.6");

	libc = libc ? libc : space__library(l->s, "libc-2.");
	l->dlopen_flags = RTLD_NOW;
	l->dlopen = code__function(l->s, libc, "dlopen");
	l->dlerror = code__function(l->s, libc, "dlerror");
	if (!l->dlopen) {
		struct code *libdl = space__library(l->s, "libdl");

		l->dlopen = libdl ? code__function(l->s, libdl, "dlopen") : 0;
		l->dlerror = libdl ? code__function(l->s, libdl, "dlerror") : 0;
	}
	if (!l->dlopen) {
		l->dlopen = code__function(l->s, libc, "__libc_dlopen_mode");
		l->dlopen_flags |= RTLD_DLOPEN_2;
	}
	l->mmap = code__function(l->s, libc, "mmap");
	l->munmap = code__function(l->s, libc, "munmap");
	l->syscall = code__function(l->s, libc, "syscall");
	l->memfd_create = code__function(l->s, libc, "memfd_create");
	l->errno_location = code__function(l->s, libc, "__errno_location");
	return l->dlopen && l->mmap && l->munmap && l->syscall && l->errno_location;
}

/* Before glibc 2.34 threads are in a separate library, without which the shim does nothing. */
static bool has_threads(struct space *s)
{
	static const char *const libraries[] = { "libc.so.6", "libc-2.", "libpthread" };
	struct code *code;

	for (u32 i = 0; i < ARRAY_LEN(libraries); i++) {
		code = space__library(s, libraries[i]);
		if (code && code__function(s, code, "pthread_create"))
			return true;
	}
	return false;
}

/* Copies dlopen's error message, made printable. */
static void copy_error(struct load *l)
{
	char text[256];
	u64 at = 0;

	snprintf(l->r->why, sizeof(l->r->why), "its dynamic loader refused the library");
	if (!l->dlerror || load__call(l, l->dlerror, 0, 0, 0, &at) || !at)
		return;
	for (u32 i = 0; i < sizeof(text); i++) {
		if (i == sizeof(text) - 1 || !space__copy(l->s, at + i, &text[i], 1))
			text[i] = '\0';
		if (!text[i])
			break;
	}
	check__plain(text);
	snprintf(l->r->why, sizeof(l->r->why), "its dynamic loader reports: %s", text);
}

/* Returns 0, -ENOENT with the reason if the loader refused, or negative errno. */
static int open_library(struct load *l, const char *path)
{
	u64 args[] = { l->scratch, l->dlopen_flags }, handle;
	int err;

	if (strlen(path) >= TEXT_MAX || !space__write(l->s, l->scratch, path, strlen(path) + 1))
		return -ENAMETOOLONG;
	err = tracee__call(&l->t, l->dlopen, args, 2, l->scratch + SCRATCH, l->dlopen_ns, &handle);
	if (err)
		return err;
	if (handle)
		return 0;
	copy_error(l);
	return -ENOENT;
}

static int open_by_memfd(struct load *l)
{
	struct stat st;
	char path[64];
	int fd = shim_file__make_memfd(l, &st), err, closed;

	if (fd < 0) {
		if (fd == -ESRCH || fd == -EFAULT || fd == -ETIMEDOUT)
			return fd;
		shim_file__explain(l, fd);
		return -ENOENT;
	}
	/* threads need not share descriptors */
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	err = open_library(l, path);
	if (!err) {
		l->r->memfd = true;
		l->file = st;
	}
	/* after a crash or a call that has not returned, no other call is made */
	if (err && err != -ENOENT)
		return err;
	closed = shim_file__close_memfd(l, fd);
	return err ? err : closed;
}

static int map_scratch(struct load *l)
{
	u64 args[] = { 0, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~0ULL, 0 };
	u64 at;
	int err = tracee__call(&l->t, l->mmap, args, 6, 0, CALL_NS, &at);

	if (!err && at > ~4095ULL) {
		snprintf(l->r->why, sizeof(l->r->why), "it can't map memory: %s", strerror((int)(0 - at)));
		err = -ENOENT;
	}
	if (!err)
		l->scratch = at;
	return err;
}

/* Makes the borrowed thread call all functions. Returns 0, -ENOENT with the reason, or negative errno. */
static int make_calls(struct load *l)
{
	u64 scratch, ignored;
	int err, saved = 0, after;

	err = load__call(l, l->errno_location, 0, 0, 0, &l->errno_at);
	if (!err && !space__copy(l->s, l->errno_at, &saved, sizeof(saved)))
		err = -EIO;
	if (!err)
		err = map_scratch(l);
	if (err)
		return err;
	err = shim_file__is_visible(l) ? open_library(l, l->shim) : -ENOENT;
	/* also used if the process's user may not enter the folders of the path */
	if (err == -ENOENT)
		err = open_by_memfd(l);
	if (err && err != -ENOENT)
		return err;
	scratch = l->scratch;
	l->scratch = 0; /* the memory was freed: it must not be used as a stack any more */
	after = load__call(l, l->munmap, scratch, SCRATCH, 0, &ignored);
	if (!after && !space__write(l->s, l->errno_at, &saved, sizeof(saved)))
		after = -EIO;
	return err ? err : after;
}

static void explain(struct load *l, int err)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);

	if (err == -ESRCH)
		snprintf(why, len, "it ended, or executed another program, while the library was being loaded");
	else if (err == -EFAULT)
		snprintf(
			why, len,
			"a function that sonde made it call crashed, and the call was aborted: the process continues, but its dynamic loader may "
			"stay locked");
	else if (err == -ETIMEDOUT)
		snprintf(
			why, len,
			"a function that sonde made it call took more than %llu s and was aborted: the process continues, but its dynamic "
			"loader may stay locked",
			l->dlopen_ns / 1000000000);
	else if (err != -ENOENT)
		snprintf(why, len, "%s", strerror(-err));
}

/* The loader's result is untrusted, so the mappings are checked for exactly this file. */
static bool is_loaded(const struct load *l)
{
	struct space now = SPACE_NONE;
	bool is = !space__read(&now, l->s->pid) && space__maps_file(&now, MEMFD_NAME, l->file.st_dev, l->file.st_ino);

	space__free(&now);
	return is;
}

/* Does the shim's thread run? It sets its name first of all. Also true for a process that has ended. */
static bool has_thread(u32 pid)
{
	char path[320], name[32];
	bool found = false;
	struct dirent *d;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return true;
	while (!found && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%u/task/%s/comm", pid, d->d_name);
		f = fopen(path, "re");
		found = f && fgets(name, sizeof(name), f) && !strcmp(name, THREAD_NAME "\n");
		if (f)
			fclose(f);
	}
	closedir(dir);
	return found;
}

static bool thread_starts(u32 pid)
{
	for (u32 i = 0; i < CHECKS; i++) {
		if (has_thread(pid))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = CHECK_NS }, NULL);
	}
	return false;
}

/* Reads everything possible before a thread is stopped. false: failed, with the reason. */
static bool prepare(struct load *l)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);
	bool found = find_functions(l), threads = found && has_threads(l->s);
	int err = threads ? shim_file__read(l) : 0;

	if (!err && threads && safe_point__prepare(l->s))
		return true;
	if (err)
		snprintf(why, len, "%.400s: %s", l->shim, strerror(-err));
	else if (space__is_late(l->s))
		snprintf(
			why, len,
			"parsing its files took more than %d s, and nothing was stopped: try again when the machine is less busy",
			LOAD_FILES_MS / 1000);
	else if (!found)
		snprintf(why, len, "its C library has no dlopen");
	else
		snprintf(why, len,
			 "it has not loaded libpthread.so.0, without which it has no threads: it does not use CUDA");
	return false;
}

void load__shim(struct space *s, const char *shim, const struct inject_options *options, struct inject_result *r)
{
	static struct load l;
	char refusal[512];
	u64 held;
	int err;

	l = (struct load){ .s = s, .shim = shim, .r = r };
	l.dlopen_ns = options->impatient ? IMPATIENT_NS : DLOPEN_NS;
	r->outcome = INJECT_REFUSED;
	if (!prepare(&l))
		return;
	/*
	 * The target's thread stays stopped while this process waits for a CPU, so this process gets a real-time
	 * priority if it may have one. Children that are forked from here on parse untrusted bytes, and do not inherit
	 * the priority.
	 */
	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 }))
		setpriority(PRIO_PROCESS, 0, PRIORITY);
	if (choose__thread(s, &l.t, options->force, r))
		return;
	/* not earlier: a process with a filter of its own can't read the target's */
	if (privileges__filter_injector()) {
		tracee__release(&l.t);
		snprintf(r->why, sizeof(r->why), INJECT_NO_ROOM);
		return;
	}
	if (s->memory < 0) {
		tracee__release(&l.t);
		snprintf(r->why, sizeof(r->why), "its memory can't be written; %s",
			 privileges__refusal(refusal, sizeof(refusal)));
		return;
	}
	r->outcome = INJECT_FAILED;
	err = tracee__borrow(&l.t);
	if (!err)
		err = make_calls(&l);
	explain(&l, err);
	held = tracee__release(&l.t);
	r->tid = l.t.tid;
	r->held_ns = held;
	r->stopped_ns = l.t.stopped_ns > r->stopped_ns ? l.t.stopped_ns : r->stopped_ns;
	if (!err)
		snprintf(r->why, sizeof(r->why), "its dynamic loader reported success, but the library is not mapped");
	if (err || !is_loaded(&l))
		return;
	if (!thread_starts(s->pid)) {
		snprintf(
			r->why, sizeof(r->why),
			"the library is loaded but could not start its thread, and records nothing without it: check the "
			"limits of the process (/proc/%u/limits: processes, address space, locked memory; pids.max of its cgroup)",
			s->pid);
		return;
	}
	r->outcome = INJECT_DONE;
	*r->why = '\0';
}
