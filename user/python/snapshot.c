// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/mapped.h"
#include "process/procs.h"
#include "python/layouts.h"
#include "python/names.h"
#include "python/task_layout.h"
#include "sandbox/bounded.h"
#include "sandbox/privileges.h"
#include "util/array.h"
#include "util/path.h"

#define INTERPRETERS_MAX 1024
#define THREADS_MAX	 65536
#define COPIES_MAX	 (256ULL << 20) /* bytes of remote files, which are copied to memory */

#define SYS_FUTEX 202 /* x86-64 */
/*
 * Offset of the tid in glibc's struct pthread on x86-64. A tid that is read there counts only if the process has such
 * a thread.
 */
#define PTHREAD_TID 720
#define STACK_MAX   (16 << 20) /* bytes of a stack that are searched for it */
#define PAGE	    4096

/* The members of struct _gil_runtime_state (3.7 to 3.15) before its condition and mutex. */
struct gil_head {
	u64 interval; /* us */
	u64 last_holder;
	u32 locked;
	u32 pad;
	u64 switches;
};
#define GIL_WAIT_BYTES 88 /* the condition (48) and the mutex (40) that follow, of glibc on x86-64 */

#define PAGE_BYTES 4096
#define PAGES	   512

struct snapshot_pages {
	u64 numbers[PAGES]; /* 0: an unused entry */
	u8 bytes[PAGES][PAGE_BYTES];
};

/* Returns the page from its address on; NULL: it can't be read. */
static const u8 *page_of(const struct snapshot *l, u64 address)
{
	u64 number = address / PAGE_BYTES, at = number % PAGES;
	struct snapshot_pages *p = l->pages;

	if (p->numbers[at] != number) {
		p->numbers[at] = 0;
		if (pread(l->mem, p->bytes[at], PAGE_BYTES, (off_t)(number * PAGE_BYTES)) != PAGE_BYTES)
			return NULL;
		p->numbers[at] = number;
	}
	return p->bytes[at];
}

static bool read_of_pages(const struct snapshot *l, u64 address, u8 *to, size_t size)
{
	while (size) {
		u64 at = address % PAGE_BYTES, n = size < PAGE_BYTES - at ? size : PAGE_BYTES - at;
		const u8 *page = page_of(l, address);

		if (!page)
			return false;
		memcpy(to, page + at, n);
		address += n;
		to += n;
		size -= n;
	}
	return true;
}

int snapshot__keep_pages(struct snapshot *l)
{
	l->pages = l->pages ?: malloc(sizeof(*l->pages));
	if (l->pages)
		memset(l->pages->numbers, 0, sizeof(l->pages->numbers));
	return l->pages ? 0 : -ENOMEM;
}

void snapshot__forget_pages(struct snapshot *l)
{
	free(l->pages);
	l->pages = NULL;
}

bool snapshot__read_now(const struct snapshot *l, u64 address, void *to, size_t size)
{
	return !(address >> 47) && pread(l->mem, to, size, (off_t)address) == (ssize_t)size;
}

bool snapshot__read(const struct snapshot *l, u64 address, void *to, size_t size)
{
	if (l->pages && size <= PAGE_BYTES && !(address >> 47) && read_of_pages(l, address, to, size))
		return true;
	return snapshot__read_now(l, address, to, size);
}

u64 snapshot__word(const struct snapshot *l, u64 address)
{
	u64 word;

	return snapshot__read(l, address, &word, sizeof(word)) ? word : 0;
}

static void on_mapping(const struct mapping *m, void *arg)
{
	struct snapshot *l = arg;
	const char *file = strrchr(m->path, '/') + 1;
	bool likely = strstr(file, "python") || !strcmp(m->path, l->exe);
	const char *remote;
	u32 at = l->n_files;
	struct stat st;
	int fd;

	/* any file may contain an interpreter, but the last 8 entries are for files that are likely to */
	if (l->n_files == SNAPSHOT_FILES_MAX || (!likely && l->n_files >= SNAPSHOT_FILES_MAX - 8))
		return;
	fd = mapped__open_copy(m, MAPPED_ANY, l->remote_files, COPIES_MAX - l->copied ?: 1, &remote);
	if (remote)
		l->remote = remote;
	l->is_denied |= fd == -EACCES;
	if (fd < 0)
		return;
	if (l->remote_files && !fstat(fd, &st) && !st.st_nlink)
		l->copied += (u64)st.st_size < COPIES_MAX - l->copied ? (u64)st.st_size : COPIES_MAX - l->copied;
	if (likely) {
		memmove(l->files + 1, l->files, at * sizeof(l->files[0]));
		memmove(l->starts + 1, l->starts, at * sizeof(l->starts[0]));
		memmove(l->ends + 1, l->ends, at * sizeof(l->ends[0]));
		memmove(l->offsets + 1, l->offsets, at * sizeof(l->offsets[0]));
		at = 0;
	}
	l->files[at] = fd;
	l->starts[at] = m->start;
	l->ends[at] = m->end;
	l->offsets[at] = m->offset;
	l->n_files++;
}

/* In a child: even the open waits for a process that waits in an exec. */
static int open_memory(const void *arg, struct bounded_reply *reply)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mem", procs__shown_as(*(const u32 *)arg));
	reply->fd = open(path, O_RDONLY | O_CLOEXEC);
	return reply->fd < 0 ? -errno : 0;
}

/* Writes the message for an error of opening a file of /proc/PID. That the process has ended is no refusal: -ESRCH. */
static int explain_open_error(u32 pid, int err, char *text, size_t len)
{
	char why[400];

	if (err == -ENOENT || err == -ESRCH) {
		procs__gone(pid, text, len);
		return -ESRCH;
	}
	if (err == -ETIMEDOUT) {
		snprintf(text, len, "process %u: cannot read its memory: " BOUNDED_LATE, pid);
		return err;
	}
	snprintf(text, len, "process %u: cannot read its memory: %s%s%s", pid, strerror(-err),
		 err == -EPERM || err == -EACCES ? "\n" : "",
		 err == -EPERM || err == -EACCES ? privileges__refusal(why, sizeof(why)) : "");
	return err;
}

int snapshot__open(struct snapshot *l, u32 pid, char *err, size_t len)
{
	struct bounded_reply memory;
	char path[64];
	ssize_t n;
	int ret;

	*l = (struct snapshot){ .pid = pid, .mem = -1, .remote_files = l->remote_files };
	map__init(&l->codes, sizeof(u64), sizeof(struct snapshot_code));
	map__init(&l->types, sizeof(u64), sizeof(u8));
	ret = bounded__call(pid, open_memory, &pid, sizeof(pid), &memory);
	l->mem = memory.fd;
	if (ret)
		return explain_open_error(pid, ret, err, len);
	snprintf(path, sizeof(path), "/proc/%u/exe", procs__shown_as(pid));
	n = readlink(path, l->exe, sizeof(l->exe) - 1);
	l->exe[n < 0 ? 0 : n] = '\0';
	ret = procs__each_mapping_of(pid, on_mapping, l);
	return ret ? explain_open_error(pid, ret, err, len) : 0;
}

/* Finds the load bias: the difference between addresses in the process and in the file. */
static bool bias_of(struct elf *elf, const struct snapshot *l, u32 file, u64 *bias)
{
	u64 addr, size, offset;

	for (u32 i = 0; elf__text(elf, i, &addr, &size); i++) {
		if (elf__offset(elf, addr, &offset) || offset + size <= l->offsets[file] ||
		    offset >= l->offsets[file] + (l->ends[file] - l->starts[file]))
			continue;
		*bias = l->starts[file] - l->offsets[file] - (addr - offset);
		return true;
	}
	return false;
}

/* From 3.14 on the file of the module _asyncio, or the interpreter's if it is built in, has the offsets of tasks. */
static void read_asyncio(struct snapshot *l)
{
	struct elf *elf;
	bool found = l->layout.version < 0x030e;

	for (u32 i = 0; i < l->n_files && !found; i++) {
		if (elf__open(&elf, l->files[i]))
			continue;
		found = task_layout__read_file(elf, l->asyncio);
		elf__close(elf);
	}
}

static void use_runtime(struct snapshot *l, u32 i)
{
	l->layout = l->runtimes[i].layout;
	l->runtime = l->runtimes[i].runtime;
	l->code_type = l->runtimes[i].code_type;
}

/*
 * Adds the CPython in a mapped file. Returns 0; -ENOENT: there is none; -EAGAIN: it is not initialized, as a libpython
 * that a library loaded beside the interpreter that runs; -ENOTSUP with a reason.
 */
static int add_runtime(struct snapshot *l, u32 file, char *why, size_t len)
{
	struct python_runtime found;
	struct elf *elf;
	u64 bias;
	int err;

	if (elf__open(&elf, l->files[file]))
		return -ENOENT;
	err = python__identify(elf, &found, why, len);
	if (!err && !bias_of(elf, l, file, &bias))
		err = -ENOENT;
	elf__close(elf);
	if (err)
		return err;
	if (!snapshot__word(l, found.runtime + bias + found.layout.interpreters))
		return -EAGAIN;
	/* a file may have several mappings with code, as after llvm-bolt */
	for (u32 i = 0; i < l->n_runtimes; i++)
		if (l->runtimes[i].runtime == found.runtime + bias)
			return 0;
	l->runtimes[l->n_runtimes++] = (struct snapshot_runtime){
		.layout = found.layout,
		.runtime = found.runtime + bias,
		.code_type = found.code_type + bias,
	};
	return 0;
}

int snapshot__identify(struct snapshot *l, char *err, size_t len)
{
	char why[160] = "";
	int ret = -ENOENT, added;

	for (u32 i = 0; i < l->n_files && l->n_runtimes < PYTHON_RUNTIMES; i++) {
		added = add_runtime(l, i, why, sizeof(why));
		ret = l->n_runtimes ? 0 : added == -ENOENT ? ret : added;
	}
	if (ret == -ENOENT && l->remote)
		snprintf(err, len, "process %u: no CPython was found in its files, but some lie on %s%s", l->pid,
			 l->remote,
			 l->remote_files ?
				 ": end its server, or let it continue" :
				 ", whose server may never answer, and were not opened; --remote-files opens them");
	else if (ret == -ENOENT && l->is_denied)
		snprintf(
			err, len,
			"process %u: no CPython was found in its files, but some could not be opened: permission denied, as "
			"on FUSE mounted without allow_other: mount it with -o allow_other, or run sonde as its user",
			l->pid);
	else if (ret == -ENOENT && strstr(path__file_name(l->exe), "pypy"))
		snprintf(err, len, "process %u runs PyPy (%s), whose Python stacks sonde can't read", l->pid, l->exe);
	else if (ret == -ENOENT)
		snprintf(err, len, "process %u does not run CPython (%s)", l->pid,
			 *l->exe ? l->exe : "a kernel thread");
	else if (ret == -EAGAIN)
		snprintf(err, len, "process %u: its CPython is not initialized", l->pid);
	else if (ret)
		snprintf(err, len, "process %u: %s", l->pid, *why ? why : strerror(-ret));
	if (ret)
		return ret;
	use_runtime(l, 0);
	read_asyncio(l);
	return 0;
}

static int compare_tids(const void *a, const void *b)
{
	u32 x = ((const struct snapshot_task *)a)->own_tid, y = ((const struct snapshot_task *)b)->own_tid;

	return (x > y) - (x < y);
}

static const struct snapshot_task *main_task(const struct snapshot *l)
{
	for (u32 i = 0; i < l->n_tasks; i++)
		if (l->tasks[i].tid == l->pid)
			return &l->tasks[i];
	return NULL;
}

/* The thread with this tid in the process's own pid namespace, which is the tid that its memory contains. */
static const struct snapshot_task *task_of(const struct snapshot *l, u32 tid)
{
	struct snapshot_task key = { .own_tid = tid };

	return bsearch(&key, l->tasks, l->n_tasks, sizeof(key), compare_tids);
}

/*
 * The thread on whose C stack the address is. glibc has a thread's struct pthread at the end of its stack, so it is the
 * first one above the address; the main thread has none there. NULL: it is on no such stack.
 */
static const struct snapshot_task *task_at(const struct snapshot *l, u64 address)
{
	u64 words[PAGE / 8], n, at = address & ~63ULL;
	u32 tid;

	if (!address)
		return NULL;
	/* a page at a time, as what follows it may be a guard, which can't be read */
	for (; at < address + STACK_MAX; at += n) {
		n = PAGE - at % PAGE;
		if (!snapshot__read(l, at, words, n))
			break;
		/* aligned to 64 bytes; the first and third members are its own address (tcbhead_t.tcb and .self) */
		for (u64 i = 0; i + 2 < n / 8; i += 8)
			if (words[i] == at + i * 8 && words[i + 2] == words[i] &&
			    snapshot__read(l, words[i] + PTHREAD_TID, &tid, sizeof(tid)))
				return task_of(l, tid);
	}
	return l->stack - address < at - address ? main_task(l) : NULL;
}

/*
 * Returns the thread that a thread state belongs to. From 3.11 on the thread state has the tid of the thread that it
 * was made for. In older versions, or if that is no thread of the process, the tid is read from glibc's struct pthread.
 * Another thread may run it, as uWSGI's do: the one on whose stack the interpreter's loop is.
 */
static const struct snapshot_task *owner_of(const struct snapshot *l, u64 state)
{
	const struct snapshot_task *t = task_at(l, snapshot__c_stack(l, state));
	u64 ids[2] = {};
	u32 tid = 0;

	if (t || !snapshot__read(l, state + l->layout.state_thread_id, ids, sizeof(ids)))
		return t;
	if (l->layout.version >= 0x030b && ids[1] <= 0x7fffffff)
		t = task_of(l, (u32)ids[1]);
	if (!t && ids[0] && snapshot__read(l, ids[0] + PTHREAD_TID, &tid, sizeof(tid)))
		t = task_of(l, tid);
	return t;
}

/* The address of an interpreter's GIL; before 3.12 all interpreters share one. */
static u64 gil_of(const struct snapshot *l, u64 interpreter)
{
	if (l->layout.runtime_gil)
		return l->runtime + l->layout.runtime_gil;
	return l->layout.interp_gil ? snapshot__word(l, interpreter + l->layout.interp_gil) : 0;
}

void snapshot__gils(const struct snapshot *l, void (*fn)(u64 condition, u64 interpreter, void *arg), void *arg)
{
	u64 main = gil_of(l, snapshot__main_interpreter(l)), gil;
	u64 interpreter = snapshot__word(l, l->runtime + l->layout.interpreters);
	bool has_several = false;

	for (u32 i = 0; i < INTERPRETERS_MAX && interpreter; i++) {
		gil = gil_of(l, interpreter);
		/* the main interpreter is the last one: interpreters that share its GIL are not named by it */
		if (gil && gil != main)
			fn(gil + sizeof(struct gil_head), snapshot__word(l, interpreter + l->layout.interp_id), arg);
		has_several |= gil && gil != main;
		interpreter = snapshot__word(l, interpreter + l->layout.interp_next);
	}
	if (has_several && main)
		fn(main + sizeof(struct gil_head), 0, arg);
}

static void read_gil(const struct snapshot *l, struct snapshot_interpreter *in)
{
	u64 at = gil_of(l, in->id);
	struct gil_head head;

	if (!at || !snapshot__read(l, at, &head, sizeof(head)) || head.locked > 1 || !head.interval ||
	    head.interval >> 40 || (head.last_holder & 7))
		return;
	in->gil = at;
	in->holder = head.locked ? head.last_holder : 0;
}

static struct snapshot_thread *add_thread(struct snapshot *l)
{
	if (!array__room(l->threads, l->n_threads))
		return NULL;
	l->threads[l->n_threads] = (struct snapshot_thread){};
	return &l->threads[l->n_threads++];
}

/*
 * Reads the interpreter's list of threads. A thread state whose thread is not known is skipped, because that thread is
 * just starting or ending.
 */
static int read_states(struct snapshot *l, u32 interpreter)
{
	u64 state = snapshot__word(l, l->interpreters[interpreter].id + l->layout.interp_threads);

	for (u32 i = 0; state; i++) {
		const struct snapshot_task *task = owner_of(l, state);
		struct snapshot_thread *t;

		/* the list was changed while it was read, and seems to be a cycle */
		if (i == THREADS_MAX || l->n_threads > 4 * l->n_tasks + 64)
			return -EAGAIN;
		if (task) {
			t = add_thread(l);
			if (!t)
				return -ENOMEM;
			t->task = *task;
			t->state = state;
			t->interpreter = interpreter;
		}
		state = snapshot__word(l, state + l->layout.state_next);
	}
	return 0;
}

static int read_interpreters(struct snapshot *l)
{
	u64 at = snapshot__word(l, l->runtime + l->layout.interpreters);
	int err = 0;

	for (; at && !err && l->n_interpreters < INTERPRETERS_MAX; at = snapshot__word(l, at + l->layout.interp_next)) {
		if (!array__room(l->interpreters, l->n_interpreters))
			return -ENOMEM;
		l->interpreters[l->n_interpreters] = (struct snapshot_interpreter){
			.id = at,
			.number = snapshot__word(l, at + l->layout.interp_id),
		};
		read_gil(l, &l->interpreters[l->n_interpreters]);
		err = read_states(l, l->n_interpreters++);
	}
	return err;
}

static void forget_from(struct snapshot *l, u32 threads, u32 interpreters)
{
	while (l->n_threads > threads) {
		l->n_threads--;
		free(l->threads[l->n_threads].frames);
		free(l->threads[l->n_threads].name);
	}
	l->n_interpreters = interpreters;
}

static bool has_state(const struct snapshot *l, u32 tid)
{
	for (u32 i = 0; i < l->n_threads; i++)
		if (l->threads[i].task.tid == tid && l->threads[i].state)
			return true;
	return false;
}

/* Adds the threads without a thread state: they do not run Python code, or not yet. */
static int add_others(struct snapshot *l)
{
	for (u32 i = 0; i < l->n_tasks; i++) {
		struct snapshot_thread *t;

		if (has_state(l, l->tasks[i].tid))
			continue;
		t = add_thread(l);
		if (!t)
			return -ENOMEM;
		t->task = l->tasks[i];
	}
	return 0;
}

static void set_gil_role(struct snapshot *l, struct snapshot_thread *t)
{
	const struct snapshot_interpreter *in = &l->interpreters[t->interpreter];
	u64 waited_on = in->gil + sizeof(struct gil_head);

	t->holds = in->holder && in->holder == t->state;
	t->waits = in->gil && !t->holds && t->task.in_syscall && t->task.syscall == SYS_FUTEX &&
		   t->task.arg - waited_on < GIL_WAIT_BYTES;
}

static void on_name(u32 own_tid, const char *name, void *arg)
{
	struct snapshot *l = arg;

	for (u32 i = 0; i < l->n_threads; i++)
		if (l->threads[i].task.own_tid == own_tid && !l->threads[i].name)
			l->threads[i].name = strdup(name);
}

/* Reads the interpreters, threads and stacks of the runtime in use. */
static int read_runtime(struct snapshot *l)
{
	u32 first = l->n_threads, interpreters = l->n_interpreters;
	int err = -EAGAIN;

	for (u32 i = 0; i < 5 && err == -EAGAIN; i++) {
		forget_from(l, first, interpreters);
		err = read_interpreters(l);
	}
	if (!err && l->n_interpreters == interpreters)
		err = snapshot__word(l, l->runtime) ? -EAGAIN : -ESRCH;
	for (u32 i = first; i < l->n_threads && !err; i++) {
		set_gil_role(l, &l->threads[i]);
		err = snapshot__stack(l, &l->threads[i]);
	}
	snapshot__names(l, on_name, l);
	return err;
}

int snapshot__threads(struct snapshot *l)
{
	int err = 0;

	qsort(l->tasks, l->n_tasks, sizeof(*l->tasks), compare_tids);
	for (u32 i = l->n_runtimes; i-- && !err;) {
		use_runtime(l, i);
		err = read_runtime(l);
	}
	return err ? err : add_others(l);
}

void snapshot__close_files(struct snapshot *l)
{
	for (u32 i = 0; i < l->n_files; i++)
		close(l->files[i]);
	l->n_files = 0;
}

void snapshot__free(struct snapshot *l)
{
	forget_from(l, 0, 0);
	free(l->threads);
	free(l->interpreters);
	snapshot__forget_objects(l);
	free(l->tasks);
	snapshot__forget_pages(l);
	snapshot__close_files(l);
	if (l->mem >= 0)
		close(l->mem);
	*l = (struct snapshot){ .mem = -1 };
}
