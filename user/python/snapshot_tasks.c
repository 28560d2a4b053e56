// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads from /proc what the kernel knows of a process's threads: names, states, system calls, and for how long they
 * have been asleep.
 */
#include "python/snapshot.h"

#include "process/frozen.h"
#include "util/array.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 65536
#define CPUS_MAX  4096

static bool read_file(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/*
 * The time of the scheduler's clock at which a thread was last accounted: of a sleeping thread, when it was switched
 * out. ns; 0: not known.
 */
static u64 last_accounted(int dir, const char *name)
{
	unsigned long long ms, ns;
	char text[512], *at;

	if (!read_file(dir, name, text, sizeof(text)))
		return 0;
	at = strstr(text, "se.exec_start");
	at = at ? strchr(at, ':') : NULL;
	if (!at || sscanf(at + 1, " %llu.%6llu", &ms, &ns) != 2)
		return 0;
	return ms * 1000000 + ns;
}

/*
 * The current time of the scheduler's clock on each CPU. Each CPU has its own clock, which stops while the hypervisor
 * takes the CPU away. So this process moves to that CPU for a moment and reads its own thread's time.
 */
struct clocks {
	cpu_set_t *allowed;
	size_t size;
	u64 now[CPUS_MAX]; /* 0: not read yet; 1: can't be read */
	bool moved;
};

static void clocks__init(struct clocks *c)
{
	c->size = CPU_ALLOC_SIZE(CPUS_MAX);
	c->allowed = CPU_ALLOC(CPUS_MAX);
	if (c->allowed && sched_getaffinity(0, c->size, c->allowed)) {
		CPU_FREE(c->allowed);
		c->allowed = NULL;
	}
}

static u64 clocks__now(struct clocks *c, int cpu)
{
	cpu_set_t *one;
	int dir;

	if (cpu < 0 || cpu >= CPUS_MAX || !c->allowed)
		return 0;
	if (c->now[cpu])
		return c->now[cpu] > 1 ? c->now[cpu] : 0;
	c->now[cpu] = 1;
	one = CPU_ALLOC(CPUS_MAX);
	dir = open("/proc/thread-self", O_DIRECTORY | O_CLOEXEC);
	if (one && dir >= 0 && CPU_ISSET_S(cpu, c->size, c->allowed)) {
		CPU_ZERO_S(c->size, one);
		CPU_SET_S(cpu, c->size, one);
		c->moved = true;
		if (!sched_setaffinity(0, c->size, one)) {
			/* this process's own time is as old as its last tick or switch: sleeping causes a switch */
			nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
			c->now[cpu] = last_accounted(dir, "sched") ?: 1;
		}
	}
	if (dir >= 0)
		close(dir);
	CPU_FREE(one);
	return c->now[cpu] > 1 ? c->now[cpu] : 0;
}

static void clocks__done(struct clocks *c)
{
	if (c->moved)
		sched_setaffinity(0, c->size, c->allowed);
	CPU_FREE(c->allowed);
}

/*
 * Parses "TID (COMM) S ...", whose 28th field is where the main thread's C stack ends, and the 39th the CPU. The name
 * may contain any characters but a newline, which the kernel escapes.
 */
static bool parse_stat(const char *text, struct snapshot_task *t, int *cpu, u64 *stack)
{
	const char *from = strchr(text, '('), *p = strrchr(text, ')');

	if (!from || !p || p < from || p[1] != ' ' || !p[2])
		return false;
	snprintf(t->comm, sizeof(t->comm), "%.*s", (int)(p - from - 1), from + 1);
	t->state = p[2];
	*cpu = -1;
	p += 2;
	for (u32 field = 3; field < 39 && p; field++) {
		p = strchr(p + 1, ' ');
		if (field == 27 && p)
			*stack = strtoull(p + 1, NULL, 10);
	}
	if (p)
		*cpu = atoi(p + 1);
	return true;
}

/*
 * Parses "NSpid: 4711 17 3": the tid in this pid namespace and in each one nested in it. Returns the innermost; 0:
 * there is only one.
 */
static u32 innermost_tid(int dir, const char *name)
{
	char text[8192], *at, *end;

	if (!read_file(dir, name, text, sizeof(text)))
		return 0;
	at = strstr(text, "\nNSpid:");
	if (!at)
		return 0;
	at += strlen("\nNSpid:");
	end = at + strcspn(at, "\n");
	*end = '\0';
	at += strspn(at, " \t");
	end = strrchr(at, '\t');
	return end ? (u32)strtoul(end + 1, NULL, 10) : 0;
}

/* Reads three small files per thread, four in a container; most of the time is spent on opening them. */
static void read_task(struct snapshot_task *t, int tasks, bool container, bool frozen, struct clocks *clocks,
		      u64 *stack)
{
	char text[1024], path[32];
	u64 seen, now;
	int cpu;

	t->asleep_ns = -1;
	t->own_tid = t->tid;
	if (container) {
		snprintf(path, sizeof(path), "%u/status", t->tid);
		t->own_tid = innermost_tid(tasks, path) ?: t->tid;
	}
	snprintf(path, sizeof(path), "%u/stat", t->tid);
	if (!read_file(tasks, path, text, sizeof(text)) || !parse_stat(text, t, &cpu, stack))
		return;
	/* the kernel shows a frozen thread as one that sleeps in the call that the freezer interrupted */
	if (t->state == 'S' && frozen)
		t->state = 'F';
	if (!strchr("SDTtF", t->state))
		return;
	/* a number of -1 means that the thread sleeps outside of a system call */
	snprintf(path, sizeof(path), "%u/syscall", t->tid);
	if (strchr("SD", t->state) && read_file(tasks, path, text, sizeof(text)) &&
	    sscanf(text, "%d %llx", &t->syscall, &t->arg) == 2 && t->syscall >= 0)
		t->in_syscall = true;
	snprintf(path, sizeof(path), "%u/sched", t->tid);
	seen = last_accounted(tasks, path);
	now = seen ? clocks__now(clocks, cpu) : 0;
	if (now)
		t->asleep_ns = now > seen ? (s64)(now - seen) : 0;
}

int snapshot__read_tasks(struct snapshot *l)
{
	struct clocks *clocks = calloc(1, sizeof(*clocks));
	char path[64];
	struct dirent *d;
	bool container;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", l->pid);
	dir = opendir(path);
	if (!dir || !clocks) {
		err = dir ? -ENOMEM : -ESRCH;
		free(clocks);
		if (dir)
			closedir(dir);
		return err;
	}
	clocks__init(clocks);
	snprintf(path, sizeof(path), "%u/status", l->pid);
	container = innermost_tid(dirfd(dir), path) != 0;
	process__is_frozen(l->pid, l->frozen, sizeof(l->frozen));
	while (!err && l->n_tasks < TASKS_MAX && (d = readdir(dir))) {
		struct snapshot_task *task;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		if (!array__room(l->tasks, l->n_tasks)) {
			err = -ENOMEM;
			break;
		}
		task = &l->tasks[l->n_tasks];
		*task = (struct snapshot_task){ .tid = (u32)atoi(d->d_name) };
		read_task(task, dirfd(dir), container, *l->frozen, clocks, &l->stack);
		l->n_tasks += task->state != 0;
	}
	clocks__done(clocks);
	free(clocks);
	closedir(dir);
	return err;
}
