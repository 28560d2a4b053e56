// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The proc family's host side: what is there when tracing begins, and what a
 * process runs, which is text of any length in its own memory. Everything read
 * from /proc/PID is the target's to choose.
 */
#include "proc.h"
#include "attach/container.h"
#include "record/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_MAX 2048

static int open_proc(u32 pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return open(path, O_DIRECTORY | O_CLOEXEC);
}

/* "" if it can't be read: a kernel thread, or gone */
static void read_exe(int dir, char *out, size_t size)
{
	ssize_t n = readlinkat(dir, "exe", out, size - 1);

	out[n < 0 ? 0 : n] = 0;
}

static void read_command(int dir, char *out, size_t size)
{
	int fd = openat(dir, "cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		n = 0;
	while (n && !out[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
			out[i] = ' ';
	out[n] = 0;
}

static void read_container(int dir, struct container *out, char *path, size_t size)
{
	int fd = openat(dir, "cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;
	char text[16384];

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n < 0 ? 0 : n] = 0;
	container__read(out, text, path, size);
}

/* A process that has ended meanwhile has no image; the directory keeps a reused pid out. */
static void emit_image(struct session *s, u32 pid, u64 time)
{
	struct proc_image r = { .event = { .time = time, .pid = pid, .tid = pid, .id = ID_proc_image } };
	char exe[TEXT_MAX], command[TEXT_MAX], cgroup[TEXT_MAX];
	struct container container;
	int dir = open_proc(pid);

	if (dir < 0)
		return;
	read_exe(dir, exe, sizeof(exe));
	read_command(dir, command, sizeof(command));
	read_container(dir, &container, cgroup, sizeof(cgroup));
	close(dir);
	if (!*exe && !*command)
		return;
	r.exe = session__intern(s, session__path(s, exe));
	if (!session__no_args(s)) {
		r.command = session__intern(s, command);
		r.cgroup = session__intern(s, cgroup);
	}
	r.container = session__intern(s, container.name);
	r.pod = session__intern(s, container.pod);
	session__emit(s, &r, sizeof(r));
}

static void emit_all_images(struct session *s)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		u32 pid = strtoul(d->d_name, NULL, 10);

		if (pid && session__wants(s, pid))
			emit_image(s, pid, session__now(s));
	}
	if (dir)
		closedir(dir);
}

static bool begun;

static void begin(struct session *s)
{
	if (begun)
		return;
	begun = true;
	session__run_iter(s, "proc_snapshot");
	emit_all_images(s);
}

static void on_joined(struct session *s, u32 pid)
{
	session__run_iter_of(s, "proc_snapshot", pid);
	if (pid)
		emit_image(s, pid, session__now(s));
	else
		emit_all_images(s);
}

static void on_event(struct session *s, const struct event *e, u32 size)
{
	if (e->id == ID_proc_exec)
		emit_image(s, e->pid, e->time);
}

static void on_mapped(struct session *s, struct elf *elf, const struct mapping *m)
{
	struct proc_map r = {
		.event = { .time = m->time, .pid = m->pid, .tid = m->pid, .id = ID_proc_map },
		.address = m->start,
		.address_end = m->end,
		.offset = m->offset,
		.dev = m->dev,
		.ino = m->ino,
	};

	begin(s);
	r.path = session__intern(s, session__path(s, m->path));
	session__emit(s, &r, sizeof(r));
}

static void on_tick(struct session *s, u64 now)
{
	begin(s);
}

FAMILY_HOST(proc) = {
	.name = "proc",
	.mapped = on_mapped,
	.joined = on_joined,
	.event = on_event,
	.tick = on_tick,
};
