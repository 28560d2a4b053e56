// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Emits processes, threads and tracks when they are first used in a frame, and finds the track for each span.
 *
 * Perfetto treats the slices of a track as a stack, so only spans that nest may share one. A thread's calls do.
 * Requests in flight do not, and get tracks of their own beside it, as many as overlap.
 */
#include <errno.h>
#include <string.h>

#include "export/perfetto.h"

#define FIRST_UUID 16

struct track_key {
	u32 pid, tid;
	u32 kind; /* 0: the thread itself */
	u32 number;
};

/* TrackDescriptor */
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS_DESCRIPTOR = 3, TRACK_THREAD_DESCRIPTOR = 4, TRACK_PARENT = 5 };
enum { TRACK_COUNTER = 8, TRACK_RANK = 12, TRACK_PROCESS_ORDERING = 19 };

#define ROOT_TRACK     0 /* has no events; states that processes have ranks */
#define ORDER_EXPLICIT 1

/* The order of processes: those with a rank (names__rank_order), others, and those that have only instants */
#define ORDER_OTHERS 0
#define ORDER_IDLE   1

static struct track *get(struct perfetto *p, const struct track_key *key)
{
	struct track *t = map__get(&p->tracks, key);

	if (!t)
		p->packet.failed = true;
	else if (!t->uuid)
		t->uuid = FIRST_UUID + p->tracks.n;
	return t;
}

void perfetto__free_tracks(struct perfetto *p)
{
	u32 i;

	for (i = 0; i < p->tracks.n; i++)
		lane__free(&((struct track *)map__value(&p->tracks, i))->lane);
	MAPS_FREE(&p->tracks, &p->containers);
}

static int on_images(const struct rows *rows, void *arg)
{
	struct perfetto *p = arg;
	u32 pid, *container;

	ROWS_EACH(v, rows) {
		pid = (u32)view__get(&v, "pid");
		container = map__get(&p->containers, &pid);
		if (!container)
			return -ENOMEM;
		*container = (u32)view__get(&v, "container");
	}
	return 0;
}

int perfetto__load_containers(struct perfetto *p)
{
	const struct schema_event *image = schema__event(p->schema, "proc_image");
	const struct schema_field *f = image ? schema_event__field(image, "container") : NULL;

	map__init(&p->tracks, sizeof(struct track_key), sizeof(struct track));
	map__init(&p->containers, sizeof(u32), sizeof(u32));
	/* Traces without this field have no containers. */
	if (!f || strcmp(f->unit, "string") != 0)
		return 0;
	return trace__read_kind(p->e->trace, "proc_image", on_images, p);
}

/* Returns "rank 3: train.py" of a process with a rank, else its name; NULL: not known. */
static const char *process_name(const struct perfetto *p, char *buf, size_t size, u32 pid)
{
	return names__rank_title(p->e->names, buf, size, pid) ?: names__title(p->e->names, buf, size, pid, 0);
}

static void put_process_fields(struct perfetto *p, u32 pid, const struct task *task)
{
	char room[300];
	const char *command = task && task->command ? names__string(p->e->names, task->command) : "";
	const char *comm = process_name(p, room, sizeof(room), pid);
	const u32 *id = map__find(&p->containers, &pid);
	const char *container = id ? names__string(p->e->names, *id) : "";

	pb__int(&p->packet, 1, names__number(p->e->names, pid));
	if (*command)
		pb__text(&p->packet, 2, command, strlen(command));
	if (comm)
		pb__text(&p->packet, 6, comm, strlen(comm));
	if (task && task->start)
		pb__int(&p->packet, 7, perfetto__boottime(p, task->start));
	if (*container)
		pb__text(&p->packet, 8, container, strlen(container));
}

/* Returns the command line without its program if that has the process's name: "/usr/bin/python3 x.py" of python3. */
static const char *arguments_of(const char *command, const char *comm)
{
	size_t program = strcspn(command, " "), len = comm ? strlen(comm) : 0;

	if (!len || program < len || memcmp(command + program - len, comm, len) != 0 ||
	    (program > len && command[program - len - 1] != '/'))
		return command;
	return command + program + (command[program] == ' ');
}

/*
 * Returns when a process or thread is described. One that reuses a number is described after its fork (perfetto__fork),
 * or Perfetto would take it for the earlier one. 0: at any time.
 */
static u64 moment_of(const struct task *task)
{
	return task && task->id >= TRACE_TASK_IDS && task->start ? task->start + 1 : 0;
}

/*
 * Writes a ProcessTree, for what a track descriptor lacks: parents, command lines for SQL, and the pid in the process's
 * namespace. Perfetto names a process by the first part of its command line, so that part is the name that reports use.
 */
static void put_tree(struct perfetto *p, u32 pid, const struct task *task)
{
	const char *command = task && task->command ? names__string(p->e->names, task->command) : "";
	char room[300];
	const char *comm = names__comm(p->e->names, pid, 0), *name = process_name(p, room, sizeof(room), pid);
	size_t tree, process;

	packet__begin(p, moment_of(task));
	tree = pb__begin(&p->packet, PACKET_PROCESS_TREE);
	process = pb__begin(&p->packet, 1);
	pb__int(&p->packet, 1, names__number(p->e->names, pid));
	if (task && task->ppid)
		pb__int(&p->packet, 2, task->ppid);
	if (name)
		pb__text(&p->packet, 3, name, strlen(name));
	command = arguments_of(command, comm);
	if (*command)
		pb__text(&p->packet, 3, command, strlen(command));
	if (task && task->ns_pid && task->ns_pid != task->pid)
		pb__int(&p->packet, 6, task->ns_pid);
	pb__end(&p->packet, process);
	pb__end(&p->packet, tree);
	packet__end(p, false);
}

static struct track *process_key(struct perfetto *p, u32 pid)
{
	return get(p, &(struct track_key){ .pid = pid, .kind = TRACK_PROCESS });
}

static void describe_process(struct perfetto *p, struct track *t, u32 pid, s64 order)
{
	const struct task *task = names__task(p->e->names, pid, 0);
	s64 by_rank = names__rank_order(p->e->names, pid);
	size_t at, process;

	t->frame = p->frame;
	put_tree(p, pid, task);
	packet__begin(p, moment_of(task));
	at = pb__begin(&p->packet, PACKET_TRACK_DESCRIPTOR);
	pb__int(&p->packet, TRACK_UUID, t->uuid);
	pb__int(&p->packet, TRACK_RANK, by_rank ? by_rank : order);
	process = pb__begin(&p->packet, TRACK_PROCESS_DESCRIPTOR);
	put_process_fields(p, pid, task);
	pb__end(&p->packet, process);
	pb__end(&p->packet, at);
	packet__end(p, false);
}

static struct track *process_track(struct perfetto *p, u32 pid)
{
	struct track *t = process_key(p, pid);

	if (t && t->frame != p->frame)
		describe_process(p, t, pid, ORDER_OTHERS);
	return t;
}

void perfetto__put_root(struct perfetto *p)
{
	size_t at;

	packet__begin(p, 0);
	at = pb__begin(&p->packet, PACKET_TRACK_DESCRIPTOR);
	pb__int(&p->packet, TRACK_UUID, ROOT_TRACK);
	pb__int(&p->packet, TRACK_PROCESS_ORDERING, ORDER_EXPLICIT);
	pb__end(&p->packet, at);
	packet__end(p, false);
}

void perfetto__put_idle_processes(struct perfetto *p)
{
	const struct track_key *key;
	struct track *t;

	for (u32 i = 0; i < p->tracks.n; i++) {
		key = map__key(&p->tracks, i);
		t = map__value(&p->tracks, i);
		if (key->kind == TRACK_PROCESS && t->frame != p->frame && t->named == p->frame)
			describe_process(p, t, key->pid, ORDER_IDLE);
	}
}

struct track *perfetto__thread_of_instant(struct perfetto *p, u32 pid, u32 tid)
{
	const char *comm = names__comm(p->e->names, pid, tid);
	struct track *t = get(p, &(struct track_key){ .pid = pid, .tid = tid }), *process;
	size_t at, thread;

	if (!t || t->frame == p->frame)
		return t;
	process = process_key(p, pid);
	if (!process)
		return NULL;
	process->named = t->frame = p->frame;
	packet__begin(p, moment_of(names__task(p->e->names, pid, tid)));
	at = pb__begin(&p->packet, PACKET_TRACK_DESCRIPTOR);
	pb__int(&p->packet, TRACK_UUID, t->uuid);
	thread = pb__begin(&p->packet, TRACK_THREAD_DESCRIPTOR);
	pb__int(&p->packet, 1, names__number(p->e->names, pid));
	pb__int(&p->packet, 2, names__number(p->e->names, tid));
	if (comm)
		pb__text(&p->packet, 5, comm, strlen(comm));
	pb__end(&p->packet, thread);
	pb__end(&p->packet, at);
	packet__end(p, false);
	return t;
}

struct track *perfetto__thread(struct perfetto *p, u32 pid, u32 tid)
{
	return process_track(p, pid) ? perfetto__thread_of_instant(p, pid, tid) : NULL;
}

static void put_counter(struct perfetto *p, const char *unit)
{
	size_t at = pb__begin(&p->packet, TRACK_COUNTER);

	if (!strcmp(unit, "ns"))
		pb__int(&p->packet, 3, 1);
	else if (!strcmp(unit, "bytes"))
		pb__int(&p->packet, 3, 3);
	else if (!strcmp(unit, "%"))
		pb__text(&p->packet, 6, unit, 1);
	else
		pb__int(&p->packet, 3, 2);
	pb__end(&p->packet, at);
}

static void describe(struct perfetto *p, struct track *t, u64 parent, const char *name, const char *unit)
{
	size_t at;

	t->frame = p->frame;
	packet__begin(p, 0);
	at = pb__begin(&p->packet, PACKET_TRACK_DESCRIPTOR);
	pb__int(&p->packet, TRACK_UUID, t->uuid);
	pb__text(&p->packet, TRACK_NAME, name, strlen(name));
	if (parent)
		pb__int(&p->packet, TRACK_PARENT, parent);
	if (unit)
		put_counter(p, unit);
	pb__end(&p->packet, at);
	packet__end(p, false);
}

/* Returns the parent of the tracks about the recording itself. */
static struct track *own_track(struct perfetto *p)
{
	struct track *t = get(p, &(struct track_key){ .kind = TRACK_OWN });

	if (t && t->frame != p->frame)
		describe(p, t, 0, "sonde", NULL);
	return t;
}

static struct track *parent_of(struct perfetto *p, u32 pid, u32 kind)
{
	return pid ? process_track(p, pid) : kind > TRACK_OWN && kind <= TRACK_LAST_OWN ? own_track(p) : NULL;
}

struct track *perfetto__track(struct perfetto *p, u32 pid, u32 kind, u32 number, const char *name, const char *unit)
{
	struct track *t = get(p, &(struct track_key){ .pid = pid, .kind = kind, .number = number });
	const struct track *parent = t ? parent_of(p, pid, kind) : NULL;

	if (t && t->frame != p->frame)
		describe(p, t, parent ? parent->uuid : 0, name, unit);
	return t;
}

/* Returns the first track of that kind on which the span fits. */
static struct track *find_beside(struct perfetto *p, struct track_key *key, u64 parent, const char *name,
				 const struct interval *span)
{
	struct track *t;

	for (;; key->number++) {
		t = get(p, key);
		if (!t || lane__fits(&t->lane, span))
			break;
	}
	if (t && t->frame != p->frame)
		describe(p, t, parent, name, NULL);
	return t;
}

void perfetto__reserve(struct perfetto *p, struct track *t, const struct interval *span)
{
	if (t && lane__add(&t->lane, span))
		p->packet.failed = true;
}

static struct track *add_sibling(struct perfetto *p, struct track_key *key, u64 parent, const char *name,
				 const struct interval *span)
{
	struct track *t = find_beside(p, key, parent, name, span);

	perfetto__reserve(p, t, span);
	return t;
}

struct track *perfetto__find_track(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
				   const struct interval *span)
{
	struct track_key key = { .pid = pid, .tid = tid, .kind = e->id };
	struct track *t = tid ? perfetto__thread(p, pid, tid) : pid ? process_track(p, pid) : NULL;

	if (!t && pid)
		return NULL;
	if (tid && !meaning__of(e)->is_beside && lane__fits(&t->lane, span))
		return t;
	return find_beside(p, &key, t ? t->uuid : 0, e->name, span);
}

struct track *perfetto__reserve_track(struct perfetto *p, u32 pid, u32 tid, const struct schema_event *e,
				      const struct interval *span)
{
	struct track *t = perfetto__find_track(p, pid, tid, e, span);

	perfetto__reserve(p, t, span);
	return t;
}

struct track *perfetto__reserve_thread(struct perfetto *p, u32 pid, u32 tid, u32 kind, const char *name,
				       const struct interval *span)
{
	struct track_key key = { .pid = pid, .tid = tid, .kind = kind };
	const struct track *thread = perfetto__thread(p, pid, tid);

	return thread ? add_sibling(p, &key, thread->uuid, name, span) : NULL;
}

struct track *perfetto__reserve_near(struct perfetto *p, struct track *t, u32 pid, u32 tid, u32 kind, const char *name,
				     const struct interval *span)
{
	if (!lane__fits(&t->lane, span))
		return perfetto__reserve_thread(p, pid, tid, kind, name, span);
	perfetto__reserve(p, t, span);
	return t;
}

struct track *perfetto__reserve_process(struct perfetto *p, u32 pid, u32 kind, const char *name,
					const struct interval *span)
{
	struct track_key key = { .pid = pid, .kind = kind };
	const struct track *process = process_track(p, pid);

	return process ? add_sibling(p, &key, process->uuid, name, span) : NULL;
}

struct track *perfetto__reserve_global(struct perfetto *p, u32 kind, const char *name, const struct interval *span)
{
	struct track_key key = { .kind = kind };
	const struct track *parent = parent_of(p, 0, kind);

	return add_sibling(p, &key, parent ? parent->uuid : 0, name, span);
}
