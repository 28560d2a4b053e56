/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for numbers: functions of probes, threads and processes, texts. Fed from a whole trace, or by each record of a
 * recording.
 */
#pragma once

#include "model/view.h"
#include "util/map.h"

struct names;

struct task {
	u32 pid, tid; /* numbers of the kernel or of a merged trace */
	u32 id; /* the tid; if an earlier task had the same one, a number that replaces it (trace__set_tasks) */
	u32 ppid, ns_pid; /* 0: not known */
	char comm[16]; /* the last name, NUL-padded but not always terminated: use task__name */
	u32 exe, command; /* string ids; 0: not known */
	u32 python; /* string id of the name that Python gave the thread; 0: not known */
	u32 script; /* string id of the file that its Python was started to run; 0: none, or not known */
	u32 container, pod; /* string ids; 0: in none, or not known */
	u32 cgroup; /* string id of its path; 0: not known */
	u32 rank, world_size; /* in distributed training; world_size 0: it has no rank */
	u32 host; /* string id: name of its machine; 0: not known */
	u32 user; /* effective user plus 1; 0: not known */
	u64 start; /* CLOCK_MONOTONIC ns; 0: its start was not recorded */
	u64 end; /* 0: its end was not recorded */
};

int names__create(struct names **out, const struct schema *s);
void names__free(struct names *n);
/*
 * Reads all events that name something. Tasks with a reused pid or tid get ids of their own, which later reads of t
 * return instead of pids and tids, and which the functions below take. n must be fresh; t must outlive it. 0 or
 * negative errno.
 */
int names__load(struct names *n, struct trace *t);
/* Returns the pid or tid of an id, and other numbers unchanged. */
u32 names__number(const struct names *n, u32 id);
/* Returns the number of the machine on which a process or thread ran: 0 unless the trace was merged of several. */
u32 names__machine(const struct names *n, u32 id);
/* The time in which the task had its pid or tid: [since, until); 0 and ~0 if no other task had it. */
void names__held(const struct names *n, u32 id, u64 *since, u64 *until);
/* Calls fn with the id of each process that had this pid, or with the pid if none is known. */
void names__each_id(const struct names *n, u32 pid, void (*fn)(u32 id, void *arg), void *arg);
/* Adds the names in one event, if it has any. 0 or -ENOMEM. */
int names__feed(struct names *n, const struct view *v);

/* The function of field `probe`; NULL: not known. */
const char *names__probe(const struct names *n, u16 probe);
/*
 * Returns the task of these ids, in a recording the last one with this pid and tid; NULL: not known. tid 0: the
 * process's main thread.
 */
const struct task *names__task(const struct names *n, u32 pid, u32 tid);
/*
 * Returns the name of the thread, the one that Python gave it if it is known, else that of its process; NULL: not
 * known. Valid until the next feed or free.
 */
const char *names__comm(const struct names *n, u32 pid, u32 tid);
/* Is it a name that Python gives a thread for which the program has none, such as "Thread-1 (work)"? */
bool names__is_default(const char *name);
/*
 * Returns the effective user of a process plus 1, that of its parent before its first exec; 0: not known. Names, ranks
 * and other texts of a process are its own claims: nothing joins processes of two users by them.
 */
u32 names__user(const struct names *n, u32 pid);
/*
 * Returns the thread of the process to which its own pid namespace gives this number; 0: it has none. If nothing of the
 * process was recorded, it is the number itself.
 */
u32 names__thread_of(const struct names *n, u32 pid, u32 ns_tid);
/* Returns the process that a thread with this id is or was of; 0: not known. */
u32 names__process_of(const struct names *n, u32 tid);
/* Returns the process that had the pid at `time`; NULL: not known. */
const struct task *names__process_at(const struct names *n, u32 pid, u64 time);
/* Returns the task's last name, also if its pid was reused later; NULL: not known. t must come from the names. */
const char *task__name(const struct task *t);
/* Returns the name of the task's machine: `recorded_on`, where the trace was recorded, unless it is a merged trace. */
const char *names__host(const struct names *n, const struct task *t, const char *recorded_on);
/* As names__container for a process whose pid may have been reused. t must come from the names; NULL: none. */
void names__container_of(const struct names *n, const struct task *t, const char **container, const char **pod);
/* Returns the container and pod of a process, those of its parent before its first exec; "": in none, or not known. */
void names__container(const struct names *n, u32 pid, const char **container, const char **pod);
/*
 * Is the GIL known to be that of an interpreter of a process with several GILs? `interpreter` gets Python's number of
 * it.
 */
bool names__interpreter(const struct names *n, u32 pid, u64 gil, u64 *interpreter);
/* The text of a field of unit `string`; "" for 0 or an unknown one. */
const char *names__string(const struct names *n, u32 id);
/* Returns a text by the id that the process gave it: a kernel's mangled name, a range's name. NULL: not known. */
const char *names__text(const struct names *n, u32 pid, u64 id);
/* Returns the text if f is field `name` of gpu_kernel or has the unit `text`; NULL: it is another one, or not known. */
const char *names__text_of(const struct names *n, const struct view *v, const struct schema_field *f);
/* Writes "domain:name" of ids of texts that the process uses with NVTX. Returns buf. */
const char *names__nvtx_label(const struct names *n, u32 pid, u64 domain, u64 name, char *buf, size_t size);
/*
 * Returns the name of a range or mark of NVTX, or of a Python function, as Nsight prints it, "domain:name". NULL: v is
 * of another kind, or its name is not known. The name may be in buf.
 */
const char *names__nvtx(const struct names *n, const struct view *v, char *buf, size_t size);
/*
 * Returns the name of an operator's call, a backward node or a range as torch.profiler prints it: "aten::add",
 * "AddmmBackward0". NULL: v is of another kind, or its name is not known. The name is in buf.
 */
const char *names__torch(const struct names *n, const struct view *v, char *buf, size_t size);
/* Calls fn for each known process, by first appearance of its pid; several may have had one pid. */
void names__each_process(const struct names *n, void (*fn)(const struct task *t, void *arg), void *arg);

/*
 * Writes the name of the thread, else of its process. What an interpreter, or a program with a Python in it, runs is
 * written instead of the name of its file (docs/reading-a-trace.md). Returns buf; NULL: not known.
 */
const char *names__title(const struct names *n, char *buf, size_t size, u32 pid, u32 tid);
/* The same in a buffer that lives to the end of the enclosing block */
#define NAMES_TITLE(n, pid, tid) names__title(n, (char[64]){ 0 }, 64, pid, tid)
/* Returns the title that a process at the other end of a connection had as tracing ended; NULL: none, or not known. */
const char *names__peer_title(const struct names *n, u32 pid);
/*
 * Writes the script or module that an interpreter runs: "srv.py" of `python3 -u /opt/srv.py --port 80`, "pip" of
 * `python3 -m pip`. false: the process's command line names none.
 */
bool names__script(const struct names *n, u32 pid, char *buf, size_t size);
/* Writes "rank 3: train.py" of a process that has a rank in distributed training. Returns buf; NULL: it has none. */
const char *names__rank_title(const struct names *n, char *buf, size_t size, u32 pid);
/* Returns the number by which viewers sort processes: negative and by rank if it has one, 0 if not. */
s64 names__rank_order(const struct names *n, u32 pid);
/* Returns the path of the process's cgroup, that of its parent before its first exec; "": not known. */
const char *names__cgroup(const struct names *n, u32 pid);
/* Writes the process's container, else its systemd service, "nginx.service"; "": in none, or not known. Returns buf. */
char *names__service(const struct names *n, char *buf, size_t size, u32 pid);
/* Writes "train.py 4711", or without a name "process 4711" or "thread 4712". Returns buf. */
char *names__label(const struct names *n, char *buf, size_t size, u32 pid, u32 tid);
