/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for numbers: functions of probes, threads and processes, texts. Fed from
 * a whole trace, or record by record while recording.
 */
#ifndef SONDE_MODEL_NAMES_H
#define SONDE_MODEL_NAMES_H

#include "model/view.h"
#include "util/map.h"

struct names;

struct task {
	u32 pid, tid; /* the kernel's numbers, or those that a merged trace has */
	u32 id; /* tid, or where another one had that before, what readings of the trace have instead (trace__set_tasks) */
	u32 ppid, ns_pid; /* 0: not known */
	char comm[16]; /* the last name seen; NUL-padded, not always terminated: names__comm */
	u32 exe, command; /* string ids, 0: not known */
	u32 container, pod; /* likewise; 0: in none, or not known */
	u64 start; /* CLOCK_MONOTONIC ns; 0: its start was not recorded */
	u64 end; /* 0: not seen to end */
};

int names__create(struct names **out, const struct schema *s);
void names__free(struct names *n);
/*
 * Reads all events that name something. Tasks with a reused pid or tid get ids of their own, which later reads of
 * t have in place of pids and tids, and which the functions below take. n must be fresh; t must outlive it. 0 or
 * negative errno.
 */
int names__load(struct names *n, struct trace *t);
/* The pid or tid of an id; other numbers are returned as they are. */
u32 names__number(const struct names *n, u32 id);
/* When the process or thread had its pid or tid: [since, until), 0 and ~0 where no other one had it. */
void names__held(const struct names *n, u32 id, u64 *since, u64 *until);
/* Calls fn with the id of each process that had a number, or with the number if none is known. */
void names__each_id(const struct names *n, u32 pid, void (*fn)(u32 id, void *arg), void *arg);
/* Takes one event, if it names something. 0 or -ENOMEM. */
int names__feed(struct names *n, const struct view *v);

/* The function of field `probe`; NULL: not known. */
const char *names__probe(const struct names *n, u16 probe);
/*
 * The task of these ids; while recording, the last one with this pid and tid; NULL: never seen. tid 0 means the
 * process (its main thread).
 */
const struct task *names__task(const struct names *n, u32 pid, u32 tid);
/* Of the thread, else of its process; NULL: not known. Lives until the next feed or free. */
const char *names__comm(const struct names *n, u32 pid, u32 tid);
/* The process that had the pid at a moment; NULL: none is known. */
const struct task *names__process_at(const struct names *n, u32 pid, u64 time);
/* The task's own last name, also if its pid was reused later; NULL: not known. t must be one of names'. */
const char *task__name(const struct task *t);
/*
 * Likewise for a process that may have ended and whose pid may have been reused. t must be one of names'; NULL:
 * none.
 */
void names__container_of(const struct names *n, const struct task *t, const char **container, const char **pod);
/* Container and pod of a process, its parent's where it has only been forked; "": in none, or not known. */
void names__container(const struct names *n, u32 pid, const char **container, const char **pod);
/* The text of a field of unit `string`; "" for 0 or an unknown one. */
const char *names__string(const struct names *n, u32 id);
/* A kernel by the number that its process's shim gave it, as mangled; NULL: not known. */
const char *names__kernel(const struct names *n, u32 pid, u64 number);
/* Of field `name` of events gpu_kernel, which is such a number; NULL: another field, or not known. */
const char *names__kernel_of(const struct names *n, const struct view *v, const struct schema_field *f);
/* Calls fn for each known process, by first appearance of its pid: several in turn may have had it. */
void names__each_process(const struct names *n, void (*fn)(const struct task *t, void *arg), void *arg);

/* "python3 4711", without a name "process 4711" or "thread 4712", into buf; returns buf. */
char *names__label(const struct names *n, char *buf, size_t size, u32 pid, u32 tid);

#endif
