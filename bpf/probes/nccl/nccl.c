// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of NCCL: finds in each mapped libnccl the offsets of the members of struct ncclComm that the programs
 * read.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "attach/library.h"
#include "attach/steering.h"
#include "elf/dwarf.h"
#include "nccl.h"
#include "record/family.h"
#include "util/array.h"

#define PATIENCE 100 /* ms to wait for the layout when a library is mapped */

enum {
	START_MAGIC,
	END_MAGIC,
	HASH,
	RANK,
	SIZE,
	DEVICE,
	MEMBERS,
};

/* Names of members in struct ncclComm, comm.h of NCCL 2.21 to 2.32. */
static const struct dwarf_member members[MEMBERS] = {
	[START_MAGIC] = { "startMagic", 8, 0 },
	[END_MAGIC] = { "endMagic", 8, 0 },
	[HASH] = { "commHash", 8, 0 },
	[RANK] = { "rank", 4, 0 },
	[SIZE] = { "nRanks", 4, 0 },
	[DEVICE] = { "cudaDev", 4, 0 },
};

struct library {
	struct dwarf_job job;
	u64 started; /* ns: when the job was started */
	struct nccl_library event;
	u32 generation; /* of the inode number */
	u32 uid; /* user of the process that mapped it first */
};

/* The libraries, with the same indexes as in nccl_layouts. */
struct libraries {
	struct library list[NCCL_LAYOUTS];
	u32 n;
};

static struct libraries *libraries_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_nccl_library));
}

/* The most layouts for files that a user other than root mapped first, counted for each user. */
#define USER_LAYOUTS (NCCL_LAYOUTS / 4)

/* A job that takes longer than this is stopped. */
#define JOB_NS 15000000000ULL

/* The largest accepted offset in a communicator, whose size is 16 KiB to 1.2 MB in the versions of docs/nccl.md. */
#define COMM_MAX (16U << 20)

static bool check_layout(const void *key, const void *value)
{
	const struct nccl_layout *l = value;
	const u64 offsets[] = { l->start_magic, l->end_magic, l->hash, l->rank, l->size, l->device };

	for (u32 i = 0; i < ARRAY_LEN(offsets); i++)
		if (offsets[i] > COMM_MAX)
			return false;
	return true;
}

STEERING(layouts) = {
	.map = "nccl_layouts",
	.key_size = sizeof(u32),
	.value_size = sizeof(struct nccl_layout),
	.once = true,
	.check = check_layout,
};

static bool check_process(const void *key, const void *value)
{
	u32 layout;

	memcpy(&layout, value, sizeof(layout));
	return layout < NCCL_LAYOUTS;
}

STEERING(processes) = {
	.map = "nccl_processes",
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
	.check = check_process,
};

static bool is_runtime(struct elf *elf, const char *path, bool hint)
{
	return library__is(elf, "libnccl.so", "ncclAllReduce");
}

/* Stores and reports the result of a job: the layout, or why it is not known. */
static void finish_job(struct session *s, struct library *l, int err, const struct dwarf_member *m)
{
	u32 index = l - libraries_of(s)->list;

	l->event.event.time = session__now(s);
	/* add_library() has set it to minus the time at which the job was started */
	l->event.took += l->event.event.time;
	if (err) {
		l->event.why = session__intern(s, dwarf__error(err));
	} else {
		l->event.layout = (struct nccl_layout){
			.start_magic = m[START_MAGIC].offset,
			.end_magic = m[END_MAGIC].offset,
			.hash = m[HASH].offset,
			.rank = m[RANK].offset,
			.size = m[SIZE].offset,
			.device = m[DEVICE].offset,
		};
		session__map_set(s, "nccl_layouts", &index, &l->event.layout, BPF_ANY);
	}
	session__emit(s, &l->event, sizeof(l->event));
}

static void poll_job(struct session *s, struct library *l, int timeout_ms)
{
	struct dwarf_member m[MEMBERS];
	int err;

	memcpy(m, members, sizeof(m));
	err = dwarf_job__poll(&l->job, timeout_ms, m, MEMBERS);
	/* a child that hangs without using CPU time exceeds none of its resource limits */
	if (err == -EAGAIN && session__now(s) > l->started + JOB_NS) {
		dwarf_job__cancel(&l->job);
		err = -ETIMEDOUT;
	}
	if (err != -EAGAIN)
		finish_job(s, l, err, m);
}

static void add_library(struct session *s, struct library *l, const struct mapping *m)
{
	int err;

	l->generation = m->generation;
	l->uid = m->uid;
	l->started = session__now(s);
	l->event = (struct nccl_library){
		.event = { .id = ID_nccl_library, .pid = m->pid, .tid = m->pid },
		.dev = m->dev,
		.ino = m->ino,
		.path = session__intern(s, session__path(s, m->path)),
		.took = -l->started,
	};
	err = session__start_dwarf(s, &l->job, m, "ncclComm", members, MEMBERS);
	if (err)
		finish_job(s, l, err, NULL);
	else
		poll_job(s, l, PATIENCE);
}

/* Root's files may use all free entries, those of another user a part: any user can map many files. */
static bool has_room(const struct libraries *known, u32 uid)
{
	u32 facts = 0;

	for (u32 i = 0; i < known->n; i++)
		facts += known->list[i].uid == uid;
	return known->n < NCCL_LAYOUTS && (!uid || facts < USER_LAYOUTS);
}

/*
 * A child process reads the library's DWARF. If that takes longer than it does for NCCL's own builds, this process
 * continues without the answer. Until it arrives no communicator is described; each is described at its next use.
 */
static void object_mapped(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m)
{
	struct libraries *known = libraries_of(s);
	struct library *l;
	char why[128];
	u32 i;

	for (i = 0; i < known->n; i++) {
		l = &known->list[i];
		if (l->event.dev == m->dev && l->event.ino == m->ino && l->generation == m->generation)
			break;
	}
	if (i == known->n && !has_room(known, m->uid)) {
		snprintf(why, sizeof(why),
			 "sonde describes communicators of %d files of NCCL at most, and of %d for one user",
			 NCCL_LAYOUTS, USER_LAYOUTS);
		session__left_out(s, m->path, m->uid, why);
		return;
	}
	if (i == known->n) {
		known->n++;
		add_library(s, &known->list[i], m);
	}
	session__set_process(s, "nccl_processes", m->pid, &i);
}

static void tick(struct session *s, u64 now)
{
	struct libraries *known = libraries_of(s);
	u32 i;

	for (i = 0; i < known->n; i++)
		if (known->list[i].job.running)
			poll_job(s, &known->list[i], 0);
}

static const struct family_part parts[] = {
	FAMILY_PART("nccl_process_exit", "communicators of processes that ended"),
	FAMILY_PART("nccl_process_fork", "communicators of processes that fork"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(nccl_host) = {
	.name = "nccl",
	.toggles = true,
	.parts = parts,
	.is_runtime = is_runtime,
	.state = sizeof(struct libraries),
	.object_mapped = object_mapped,
	.tick = tick,
};
