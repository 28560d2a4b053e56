// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "inject/load.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "inject/tracee.h"
#include "sandbox/privileges.h"
#include "util/file.h"
#include "util/array.h"

#define SCRATCH	      (512 * 1024) /* the stack for the calls, with texts below it */
#define PRIORITY      (-15) /* nice */
#define TEXT_MAX      512
#define CALL_NS	      1000000000ULL
#define DLOPEN_NS     5000000000ULL /* another thread may be loading something: it goes on, and lets this one */
#define IMPATIENT_NS  1000000000ULL /* the same, of an impatient caller */
#define MEMFD_NAME    "libsonde-cupti.so" /* as user/util/section.c knows it */
#define MEMFD_FLAGS   (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define MEMFD_EXEC    0x10U /* linux/memfd.h, from 6.3 on */
#define RTLD_DLOPEN_2 0x80000000U /* what __libc_dlopen_mode wants, before 2.34 */
#define THREAD_NAME   "sonde-cupti" /* cupti-shim/shim.c */
#define LIBRARY_MAX   (16 << 20)
#define PART	      (SCRATCH / 2) /* of the library, written at once */
#define LOOKS	      100 /* for it: two seconds in all */
#define LOOK_NS	      20000000
#define SEALS	      (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct load {
	struct space *s;
	struct tracee t;
	struct inject_result *r;
	const char *shim;
	struct stat file; /* of the shim */
	u8 *library; /* its bytes, file.st_size of them */
	u64 dlopen, dlerror, mmap, munmap, syscall, memfd_create, errno_location;
	u32 dlopen_flags;
	u64 dlopen_ns; /* how long it may take */
	u64 scratch;
	u64 errno_at; /* of the borrowed thread */
};

static int call(struct load *l, u64 function, u64 a, u64 b, u64 c, u64 *result)
{
	u64 args[] = { a, b, c };

	return tracee__call(&l->t, function, args, 3, l->scratch ? l->scratch + SCRATCH : 0, CALL_NS, result);
}

/* A system call in the process, with the process's rights. 0 with what it returned, or negative errno. */
static int system_call(struct load *l, u64 number, u64 a, u64 b, u64 c, u64 *result)
{
	u64 args[] = { number, a, b, c };
	int err = tracee__call(&l->t, l->syscall, args, 4, l->scratch + SCRATCH, CALL_NS, result), reason;

	if (err || (s64)*result >= 0)
		return err;
	if (!space__copy(l->s, l->errno_at, &reason, sizeof(reason)) || reason <= 0 || reason >= 4096)
		return -EIO;
	/* these say here that the call itself failed */
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

/* Before glibc 2.34 threads are in a library of their own, and the shim does nothing without it. */
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

/* Read before anything is interrupted. 0 or negative errno. */
static int read_library(struct load *l)
{
	int fd = file__open_regular(l->shim), err = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &l->file))
		err = -errno;
	else if (!l->file.st_size || l->file.st_size > LIBRARY_MAX)
		err = -EFBIG;
	if (!err && !(l->library = malloc((size_t)l->file.st_size)))
		err = -ENOMEM;
	for (off_t at = 0; !err && at < l->file.st_size; at += n) {
		n = pread(fd, l->library + at, (size_t)(l->file.st_size - at), at);
		err = n > 0 ? 0 : n < 0 ? -errno : -EIO;
	}
	close(fd);
	return err;
}

/* Does the process see this very file by the same path? */
static bool is_visible(const struct load *l)
{
	struct stat theirs;
	char root[64];
	bool same;
	int fd;

	snprintf(root, sizeof(root), "/proc/%u/root", l->s->pid);
	fd = file__find_in_root(root, l->shim);
	same = fd >= 0 && !fstat(fd, &theirs) && l->file.st_dev == theirs.st_dev && l->file.st_ino == theirs.st_ino;
	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * The library's bytes into the process's memfd, which the process itself writes and
 * seals. Its descriptor is a claim: whatever else it names, only the process's own
 * rights reach it.
 */
static int fill(struct load *l, int memfd)
{
	u64 size = (u64)l->file.st_size, n;
	int err;

	for (u64 at = 0; at < size; at += n) {
		u64 part = size - at < PART ? size - at : PART;

		if (!space__write(l->s, l->scratch, l->library + at, part))
			return -EIO;
		err = system_call(l, SYS_write, (u64)memfd, l->scratch, part, &n);
		if (err)
			return err;
		if (!n || n > part)
			return -EIO;
	}
	return system_call(l, SYS_fcntl, (u64)memfd, F_ADD_SEALS, SEALS, &n);
}

/* A memfd of sonde's own shows on which device they all are. */
static bool is_memfd(const struct stat *st)
{
	int fd = memfd_create("sonde", MFD_CLOEXEC);
	struct stat own;
	bool same = fd >= 0 && !fstat(fd, &own) && own.st_dev == st->st_dev && S_ISREG(st->st_mode);

	if (fd >= 0)
		close(fd);
	return same;
}

static bool has_library(const struct load *l, int fd)
{
	char buf[65536];

	for (off_t at = 0; at < l->file.st_size;) {
		ssize_t n = pread(fd, buf, sizeof(buf), at);

		if (n <= 0 || n > l->file.st_size - at || memcmp(buf, l->library + at, (size_t)n))
			return false;
		at += n;
	}
	return true;
}

/*
 * Is what the process has under this number a memfd with the library in it, whole and
 * sealed? Nothing but a memfd is opened, and that for reading: which file it is, is
 * asked of a descriptor that opens nothing.
 */
static bool is_library(const struct load *l, int memfd, struct stat *st)
{
	char path[64];
	int at, fd;
	bool is;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%d", l->t.pid, l->t.tid, memfd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return false;
	if (fstat(at, st) || !is_memfd(st) || st->st_size != l->file.st_size) {
		close(at);
		return false;
	}
	fd = file__reopen_regular(at);
	is = fd >= 0 && fcntl(fd, F_GET_SEALS) == SEALS && has_library(l, fd);
	if (fd >= 0)
		close(fd);
	return is;
}

static int close_memfd(struct load *l, int memfd)
{
	u64 ignored;

	return call(l, l->syscall, SYS_close, memfd, 0, &ignored);
}

/* A descriptor in the process, with the library in it; a negative errno with the reason if there is none. */
static int make_memfd(struct load *l, struct stat *st)
{
	u64 fd;
	int err;

	if (check__file_limit(l->s->pid) < (u64)l->file.st_size)
		return -EFBIG;
	if (!l->memfd_create || !space__write(l->s, l->scratch, MEMFD_NAME, sizeof(MEMFD_NAME)))
		return -ENOSYS;
	err = call(l, l->memfd_create, l->scratch, MEMFD_FLAGS | MEMFD_EXEC, 0, &fd);
	if (!err && (int)fd < 0)
		err = call(l, l->memfd_create, l->scratch, MEMFD_FLAGS, 0, &fd);
	if (err)
		return err;
	if ((int)fd < 0)
		return -EMFILE;
	err = fill(l, (int)fd);
	if (!err && !is_library(l, (int)fd, st))
		err = -EBADFD;
	if (err && err != -ESRCH && err != -EFAULT && err != -ETIMEDOUT)
		close_memfd(l, (int)fd);
	return err ? err : (int)fd;
}

/* What the loader has to say, without what moves a terminal's cursor. */
static void copy_error(struct load *l)
{
	char text[256];
	u64 at = 0;

	snprintf(l->r->why, sizeof(l->r->why), "its dynamic loader refused the library");
	if (!l->dlerror || call(l, l->dlerror, 0, 0, 0, &at) || !at)
		return;
	for (u32 i = 0; i < sizeof(text); i++) {
		if (i == sizeof(text) - 1 || !space__copy(l->s, at + i, &text[i], 1))
			text[i] = '\0';
		if (!text[i])
			break;
	}
	check__plain(text);
	snprintf(l->r->why, sizeof(l->r->why), "its dynamic loader says: %s", text);
}

/* 0, -ENOENT with the reason: it was refused, or negative errno. */
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

static void explain_memfd(struct load *l, int err)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);

	if (err == -EFBIG)
		snprintf(
			why, len,
			"it can't see the library's file, and is not allowed to write one of %lld bytes: `prlimit --pid %u "
			"--fsize=unlimited` allows it",
			(long long)l->file.st_size, l->s->pid);
	else if (err == -EBADFD)
		snprintf(
			why, len,
			"it can't see the library's file, and what it has instead of a memfd with the library is not one");
	else
		snprintf(why, len, "it can't see the library's file, and a memfd for it can't be made: %s",
			 strerror(-err));
}

static int open_by_memfd(struct load *l)
{
	struct stat st;
	char path[64];
	int fd = make_memfd(l, &st), err, closed;

	if (fd < 0) {
		if (fd == -ESRCH || fd == -EFAULT || fd == -ETIMEDOUT)
			return fd;
		explain_memfd(l, fd);
		return -ENOENT;
	}
	/* threads need not share descriptors */
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	err = open_library(l, path);
	if (!err) {
		l->r->memfd = true;
		l->file = st;
	}
	/* after a crash or a call that has not returned, no other is made */
	if (err && err != -ENOENT)
		return err;
	closed = close_memfd(l, fd);
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

/* The calls, one after the other, in a thread that is borrowed. 0, -ENOENT with the reason, or negative errno. */
static int make_calls(struct load *l)
{
	u64 scratch, ignored;
	int err, saved = 0, after;

	err = call(l, l->errno_location, 0, 0, 0, &l->errno_at);
	if (!err && !space__copy(l->s, l->errno_at, &saved, sizeof(saved)))
		err = -EIO;
	if (!err)
		err = map_scratch(l);
	if (err)
		return err;
	err = is_visible(l) ? open_library(l, l->shim) : -ENOENT;
	/* also where a path's folders are closed to the process's user */
	if (err == -ENOENT)
		err = open_by_memfd(l);
	if (err && err != -ENOENT)
		return err;
	scratch = l->scratch;
	l->scratch = 0; /* it is not to stand on what goes */
	after = call(l, l->munmap, scratch, SCRATCH, 0, &ignored);
	if (!after && !space__write(l->s, l->errno_at, &saved, sizeof(saved)))
		after = -EIO;
	return err ? err : after;
}

static void explain(struct load *l, int err)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);

	if (err == -ESRCH)
		snprintf(why, len, "it ended, or began another program, while it was being loaded");
	else if (err == -EFAULT)
		snprintf(
			why, len,
			"it crashed in a call that was made for it, which was broken off: it goes on, but its dynamic loader may "
			"stay locked");
	else if (err == -ETIMEDOUT)
		snprintf(
			why, len,
			"a call that was made for it took more than %llu s and was broken off: it goes on, but its dynamic "
			"loader may stay locked",
			l->dlopen_ns / 1000000000);
	else if (err != -ENOENT)
		snprintf(why, len, "%s", strerror(-err));
}

/* What its loader returned is a claim, too: the very file has to be mapped. */
static bool is_loaded(const struct load *l)
{
	struct space now = SPACE_NONE;
	bool is = !space__read(&now, l->s->pid) && space__maps_file(&now, MEMFD_NAME, l->file.st_dev, l->file.st_ino);

	space__free(&now);
	return is;
}

/* It names itself when it first runs. A process that ended has none, and needs none. */
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

static bool thread_begins(u32 pid)
{
	for (u32 i = 0; i < LOOKS; i++) {
		if (has_thread(pid))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	return false;
}

/* All that can be read before a thread is stopped. false: with the reason. */
static bool prepare(struct load *l)
{
	char *why = l->r->why;
	size_t len = sizeof(l->r->why);
	bool found = find_functions(l), threads = found && has_threads(l->s);
	int err = threads ? read_library(l) : 0;

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
			 "it has not loaded libpthread.so.0, which its C library keeps threads in: it uses no CUDA");
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
	 * A thread stands still for as long as this one waits for a CPU; not allowed: as it is. What is forked from here on parses
	 * foreign bytes, and does not inherit it.
	 */
	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 }))
		setpriority(PRIO_PROCESS, 0, PRIORITY);
	if (choose__thread(s, &l.t, options->force, r))
		return;
	/* the target's own filter, which this one would have hidden, has been read */
	privileges__filter_injector();
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
		snprintf(r->why, sizeof(r->why),
			 "its dynamic loader says that it took the library, but does not map it");
	if (err || !is_loaded(&l))
		return;
	if (!thread_begins(s->pid)) {
		snprintf(
			r->why, sizeof(r->why),
			"it has the library, but no thread for it could begin, and without one it stays asleep: see the "
			"process's limits (/proc/%u/limits: processes, address space, locked memory; pids.max of its cgroup)",
			s->pid);
		return;
	}
	r->outcome = INJECT_DONE;
	*r->why = '\0';
}
