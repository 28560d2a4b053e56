/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps and configuration shared by all BPF programs and the worker; defined in core.bpf.c. */
#pragma once

#include "event.h"
#include "glob.h"
#include "meta.h"
#include "ring.h"

/* Values of map `processes` (key: tgid). */
enum process_flags {
	PROCESS_SELECTED = 1, /* all filters that were given select it; derived from the flags below */
	PROCESS_RUNTIME = 2, /* maps CPython or a CUDA library, or uses much CPU time: sched follows it */
	PROCESS_RETURNS = 4, /* returns of its calls are probed although there are no session links */
	PROCESS_TREE = 8, /* named by -p, the command that sonde runs, or a descendant of one */
	PROCESS_COMM = 16, /* --comm: its name matches now */
	PROCESS_CGROUP = 32, /* --cgroup: it is in one of them now */
	PROCESS_USER = 64, /* --scope user: its user is now the one to whom the recording is limited */
	/* it was selected recently, and its threads are being passed on to the families, also if it no longer is */
	PROCESS_PASSED_ON = 128,
	PROCESS_CAPTURED = 256, /* --capture-range: it is in a capture range now */
};

/* How spans observe returns; const volatile span_mode. */
enum span_mode {
	SPAN_ENTRY_ONLY = 0, /* neither session links nor -p: only entries, marked EVENT_NO_DURATION */
	SPAN_PAIR = 1, /* entry and return are two links; returns only in processes with PROCESS_RETURNS */
	SPAN_SESSION = 2, /* one uprobe_session link */
};

/*
 * A uprobe's cookie. The low 16 bits are the probe's number, the highest bits the function's group (the number of
 * semicolons before the function in the program's section name). The bits between them are the kind of site: for
 * links on returns COOKIE_RETURN; for placed calls the entry or the end, and the distance from the stack pointer (or
 * frame pointer) there to the stack pointer at the call's entry.
 */
#define COOKIE_PROBE(cookie)	((cookie)&0xffff)
#define COOKIE_RETURN		(1ULL << 32)
#define COOKIE_EXIT		(1ULL << 33) /* the call ends here */
#define COOKIE_UNWIND		(1ULL << 34) /* an exception leaves the call here */
#define COOKIE_BY_FRAME_POINTER (1ULL << 35)
#define COOKIE_ABOVE_SHIFT	16 /* bits 16 to 31, in units of 8 bytes */
#define COOKIE_ABOVE(cookie)	(((cookie) >> COOKIE_ABOVE_SHIFT & 0xffff) * 8)
#define COOKIE_GROUP_SHIFT	48

#define MAX_PROBES    16384
#define KINDS_MAX     64 /* kinds of events of a family */
#define MAX_PROCESSES 65536

#define COMM_GLOBS     16
#define FILTER_CGROUPS 16
#define CGROUP_LEVELS  32 /* cgroups below this depth are not compared */

/* The argument of core_set. */
struct process_change {
	u32 pid;
	u32 flags, clear; /* flags to add and to remove */
	u32 before, now; /* output: the flags before and after */
};

struct open_call {
	u64 sp; /* at the entry: the address of the return address */
	u64 key; /* identifies the matching return together with sp, see span__key() */
	u64 out; /* a number that the entry saves for the return, see SPAN_OUT */
	u32 size; /* of the record; 0: this slot is free */
	u32 stack_at; /* offset of the fields stack and gil in the record, see at_call.bpf.h */
	/* a struct call and the fields that follow it */
	u8 record[CALL_MAX] __attribute__((aligned(8)));
};

/*
 * The largest value of a task storage, in bytes. Newer kernels (seen in 7.3) refuse to allocate 8 KiB, including
 * their own header, for one element.
 */
#define TASK_STORAGE_MAX 8000

/* The members of a map that stores a value for each thread. */
#define TASK_STORAGE(value_type)                 \
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
	__uint(map_flags, BPF_F_NO_PREALLOC);    \
	__type(key, int);                        \
	__type(value, value_type);               \
	_Static_assert(sizeof(value_type) <= TASK_STORAGE_MAX, "task storage too large")

/* The state of a thread, in task storage `threads`. */
struct thread {
	u32 depth;
	u32 selected; /* processes_version when its process was last found to be selected */
	struct open_call calls[CALL_DEPTH];
};

struct loss_count {
	u64 count;
	u64 first;
	u64 last;
};

struct hit_count {
	u64 hits;
	u64 skipped;
};

/*
 * The kernel allocates each element of a map per CPU separately, which takes 0.6 us: with an element for each probe
 * that would be a tenth of the time that a recording takes to begin.
 */

/* An element of map `losses` (per CPU), at the family's id. */
struct family_losses {
	struct loss_count reasons[LOSS_REASONS];
};

#define HITS_BLOCK 64

/* An element of map `probe_hits` (per CPU): the probes from its index * HITS_BLOCK on. */
struct hits_block {
	struct hit_count probes[HITS_BLOCK];
};

/* A record of the task_vma iterator for each executable file mapping; the NUL-terminated path follows it. */
struct vma_record {
	u64 start, end, offset; /* bytes */
	u64 dev, ino; /* device and inode number of the backing file */
	u32 generation; /* of the inode number, because file systems reuse inode numbers */
	u32 pid;
	u32 path_len; /* with the NUL; 0: unknown */
	u32 magic; /* the file system's magic number, as statfs(2) returns it in f_type */
	char comm[16]; /* the process's name */
	u32 uid; /* the account that is responsible for the process */
	u32 unused;
};

#ifdef __bpf__
#include <bpf/bpf_helpers.h>

struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
};

/*
 * Selected processes that ended recently. Key: tgid; value: start_time of the first thread, because the kernel reuses
 * tgids. The worker may examine the files of a process after its end, and looks up here whether the process was
 * selected.
 */
struct ended_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
};

struct comm_globs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COMM_GLOBS);
	__type(key, u32);
	__type(value, struct glob);
};

/* Kernfs ids of the cgroups that --cgroup names. */
struct filter_cgroups_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILTER_CGROUPS);
	__type(key, u32);
	__type(value, u64);
};

struct threads_map {
	TASK_STORAGE(struct thread);
};

/* One element per possible CPU, of RING_BYTES(ring_size); the worker sets both numbers. */
struct rings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct ring));
};

/* Wakes the worker. Records written to this ring buffer are discarded, so it is always empty. */
struct ring_bell_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/*
 * Element 0: 1 in a pause, so that programs do no expensive work for records that would be discarded.
 */
struct recording_suspended_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};

struct losses_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FAMILY_MAX);
	__type(key, u32);
	__type(value, struct family_losses);
};

struct probe_hits_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PROBES / HITS_BLOCK);
	__type(key, u32);
	__type(value, struct hits_block);
};

extern struct processes_map processes SEC(".maps");
extern struct ended_map ended SEC(".maps");
extern struct threads_map threads SEC(".maps");
extern struct rings_map rings SEC(".maps");
extern struct ring_bell_map ring_bell SEC(".maps");
extern struct recording_suspended_map recording_suspended SEC(".maps");
extern struct losses_map losses SEC(".maps");
extern struct probe_hits_map probe_hits SEC(".maps");

/* Configuration that the worker sets before it loads the programs. */
extern const volatile u32 span_mode; /* enum span_mode */
extern const volatile bool filter_on; /* record only processes with PROCESS_SELECTED */
/* The flags that a process needs while it is recorded: PROCESS_SELECTED with a filter, PROCESS_CAPTURED with ranges */
extern const volatile u32 record_need;
/*
 * The same for each kind of event, by the two bytes of its id: kinds that later events refer to are also recorded
 * outside of capture ranges.
 */
extern const volatile u16 kind_need[FAMILY_MAX][KINDS_MAX];
extern u32 processes_version;
extern const volatile bool no_args; /* leave command lines and paths out of the trace */
/* for tests (SONDE_TEST): the second read of a new code object fails */
extern const volatile bool test_unreadable_code;
extern const volatile u64 ring_size; /* bytes of data, a power of two */
extern const volatile u64 ring_mark; /* bytes in a ring above which its producers wake the worker */
#endif
