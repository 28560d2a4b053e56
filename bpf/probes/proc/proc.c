// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the proc family: the processes that exist when tracing begins, and the command line of each process,
 * which is text of any length in its own memory. A target controls everything that is read from its /proc/PID.
 */
#include "proc.h"
#include "process/container.h"
#include "python/program.h"
#include "record/family.h"

#include <unistd.h>

#define TEXT_MAX 2048
static void on_thread_name(struct session *s, u32 pid, u32 own_tid, const char *name)
{
	struct proc_name r = { .event = session__event(s, ID_proc_name), .name = session__intern(s, name) };

	r.event.pid = pid;
	r.event.tid = session__tid_of(s, pid, own_tid);
	/* the main thread has the process's name: its own is always MainThread */
	if (r.event.tid != pid)
		session__emit(s, &r, sizeof(r));
}

static void emit_rank(struct session *s, u32 pid, u64 time, const struct process_rank *rank)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	session__emit(s,
		      &(struct proc_rank){
			      .event = { .time = time, .pid = pid, .tid = pid, .id = ID_proc_rank },
			      .rank = (u32)rank->rank,
			      .world_size = (u32)rank->size,
			      .local_rank = rank->local,
			      .host = session__intern(s, host),
		      },
		      sizeof(struct proc_rank));
}

/* A process that has ended meanwhile has no image. */
static void emit_image(struct session *s, u32 pid, u64 time)
{
	struct proc_image r = { .event = { .time = time, .pid = pid, .tid = pid, .id = ID_proc_image } };
	struct process_image image;
	struct container container;
	char cgroup[TEXT_MAX];

	if (session__image(s, pid, &image) || (!*image.exe && !*image.command))
		return;
	container__read(&container, image.cgroup, cgroup, sizeof(cgroup));
	r.exe = session__intern(s, session__path(s, image.exe));
	if (!session__no_args(s)) {
		r.command = session__intern(s, image.command);
		r.cgroup = session__intern(s, cgroup);
	}
	r.container = session__intern(s, container.name);
	r.pod = session__intern(s, container.pod);
	r.uid = session__user(s, pid);
	session__emit(s, &r, sizeof(r));
	if (image.rank.size)
		emit_rank(s, pid, time, &image.rank);
}

static void on_python_program(struct session *s, u32 pid, const struct python_program *p)
{
	struct proc_python r = { .event = session__event(s, ID_proc_python) };

	r.event.pid = r.event.tid = pid;
	if (!session__no_args(s))
		r.library = session__intern(s, p->library);
	r.script = session__intern(s, session__path(s, p->script));
	session__emit(s, &r, sizeof(r));
}

/* The records of the snapshot are handled here, too. */
static void on_event(struct session *s, const struct event *e, u32 size)
{
	const struct proc_task *t = (const struct proc_task *)e;
	const struct proc_fork *f = (const struct proc_fork *)e;

	if (e->id == ID_proc_task && size >= sizeof(*t))
		session__note_own_tid(s, e->pid, e->tid, t->ns_tid);
	if (e->id == ID_proc_fork && size >= sizeof(*f))
		session__note_own_tid(s, f->child_pid, f->child_tid, f->child_ns_tid);
	if (e->id == ID_proc_exec || (e->id == ID_proc_task && e->pid == e->tid))
		emit_image(s, e->pid, e->time);
}

static void on_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	struct proc_map r = {
		.event = { .time = m->time, .pid = m->pid, .tid = m->pid, .id = ID_proc_map },
		.address = m->start,
		.address_end = m->end,
		.offset = m->offset,
		.dev = m->dev,
		.ino = m->ino,
	};

	r.path = session__intern(s, session__path(s, m->path));
	session__emit(s, &r, sizeof(r));
}

static const struct family_part parts[] = {
	FAMILY_PART("proc_forked", "processes and threads that begin during the recording"),
	FAMILY_PART("proc_execed", "programs that processes execute"),
	FAMILY_PART("proc_exited", "ends of processes and threads"),
	FAMILY_PART("proc_renamed", "changes of names"),
	FAMILY_PART("proc_snapshot", "processes and threads that exist when the recording begins"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(proc) = {
	.name = "proc",
	.parts = parts,
	.follow_iterator = "proc_snapshot",
	.object_mapped = on_mapped,
	.event = on_event,
	.thread_name = on_thread_name,
	.python_program = on_python_program,
};
