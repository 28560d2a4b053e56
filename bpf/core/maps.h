/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps and switches shared by all BPF programs and the loader; defined in core.bpf.c. */
#ifndef SONDE_MAPS_H
#define SONDE_MAPS_H

#include "event.h"
#include "meta.h"
#include "ring.h"

/* What the loader knows of a process; key of map `processes`: tgid. */
enum process_flags {
	PROCESS_SELECTED = 1, /* every filter that was given names it: follows from those below */
	PROCESS_RUNTIME = 2, /* maps CPython or a CUDA library: sched follows it */
	PROCESS_RETURNS = 4, /* its calls' returns are probed although there are no session links */
	PROCESS_TREE = 8, /* named by -p, the command that sonde runs, or a descendant of one */
	PROCESS_COMM = 16, /* --comm: its name matches now */
	PROCESS_CGROUP = 32, /* --cgroup: it is in one of them now */
	PROCESS_USER = 64, /* --scope user: it is that user's now */
	PROCESS_JOINING = 128, /* it was selected lately and is being introduced to the families, selected now or not */
};

/* How spans see returns; const volatile span_mode. */
enum span_mode {
	SPAN_ENTRY_ONLY = 0, /* no session links and no -p: entries alone, marked EVENT_NO_DURATION */
	SPAN_PAIR = 1, /* entry and return are two links; returns only in processes with PROCESS_RETURNS */
	SPAN_SESSION = 2, /* one uprobe_session link */
};

/*
 * A uprobe's cookie. The low bits are the probe's number, the highest bits the function's group (the number of semicolons
 * before the function in the program's section name). The bits between them say what kind of site it is: for links on
 * returns COOKIE_RETURN; for placed calls the entry or the end, and what has to be added to the stack pointer (or the
 * frame pointer) there to get the stack pointer at the call's entry.
 */
#define COOKIE_PROBE(cookie)	((cookie)&0xffff)
#define COOKIE_RETURN		(1ULL << 32)
#define COOKIE_EXIT		(1ULL << 33) /* the call ends here */
#define COOKIE_UNWIND		(1ULL << 34) /* an exception leaves it here */
#define COOKIE_BY_FRAME_POINTER (1ULL << 35)
#define COOKIE_ABOVE_SHIFT	16 /* to 31: in words of 8 bytes */
#define COOKIE_ABOVE(cookie)	(((cookie) >> COOKIE_ABOVE_SHIFT & 0xffff) * 8)
#define COOKIE_GROUP_SHIFT	48

#define MAX_PROBES    8192
#define MAX_FAMILIES  16
#define MAX_PROCESSES 65536

#define COMM_GLOBS     16
#define FILTER_CGROUPS 16
#define CGROUP_LEVELS  32 /* deeper levels are not compared */

/*
 * A glob for a process name, as an automaton of at most 15 steps, a bit each:
 * which steps a character takes, which states every character leaves as they are ('*'), and the
 * state at the end. Bit 0 is the state at the start.
 */
struct comm_glob {
	u16 accept[256];
	u16 loops;
	u16 end;
};

/* What the loader asks of core_set. */
struct process_change {
	u32 pid;
	u32 flags, clear; /* to be added and taken away */
	u32 before, now; /* the answer */
};

struct open_call {
	u64 sp; /* at the entry: the address of the return address */
	u64 key; /* what its return will be known by, with sp: see span__key() */
	u64 out; /* what the entry keeps for the return: see SPAN_OUT */
	u32 size; /* of the record; 0: free */
	u32 stack_at; /* where in the record its fields stack and gil are: see at_call.bpf.h */
	/* a struct call and what follows it */
	u8 record[CALL_MAX] __attribute__((aligned(8)));
};

/*
 * Bytes of the largest value of a task storage: newer kernels (seen in 7.3) refuse to allocate 8 KiB, with the header of
 * their own, for one element.
 */
#define TASK_STORAGE_MAX 8000

/* The members of a map that keeps a value for each thread. */
#define TASK_STORAGE(value_type)                 \
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
	__uint(map_flags, BPF_F_NO_PREALLOC);    \
	__type(key, int);                        \
	__type(value, value_type);               \
	_Static_assert(sizeof(value_type) <= TASK_STORAGE_MAX, "task storage too large")

/* Per thread, in task storage `threads`. */
struct thread {
	u32 depth;
	u32 selected; /* processes_version when its process was found to be wanted */
	struct open_call calls[CALL_DEPTH];
};

/* Map `losses`, per CPU: index family * LOSS_REASONS + reason */
struct loss_count {
	u64 count;
	u64 first;
	u64 last;
};

/* Map `probe_hits`, per CPU: index probe number */
struct hit_count {
	u64 hits;
	u64 skipped;
};

/* What the task_vma iterator writes for each executable file mapping; path follows, NUL-terminated. */
struct vma_record {
	u64 start, end, offset; /* bytes */
	u64 dev, ino; /* backing inode */
	u32 generation; /* of that inode number: file systems reuse them */
	u32 pid;
	u32 path_len; /* with its NUL, 0: not known */
	u32 magic; /* of its file system, as statfs(2) has it in f_type */
	char comm[16]; /* the process's name */
	u32 uid; /* its effective user */
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
 * Processes with PROCESS_SELECTED that have ended lately, key: tgid; value: start_time of their first thread, because the
 * kernel reuses tgids. The loader examines the files of a process after it may have ended, and looks its owner up here.
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
	__type(value, struct comm_glob);
};

/* Ids (kernfs) of the cgroups that --cgroup names. */
struct filter_cgroups_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILTER_CGROUPS);
	__type(key, u32);
	__type(value, u64);
};

struct threads_map {
	TASK_STORAGE(struct thread);
};

/* An element a possible CPU, each RING_BYTES(ring_size): the loader sets both numbers. */
struct rings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct ring));
};

/* Never holds a thing: what is written to it is thrown away, and wakes the loader. */
struct ring_bell_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct losses_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_FAMILIES *LOSS_REASONS);
	__type(key, u32);
	__type(value, struct loss_count);
};

struct probe_hits_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, struct hit_count);
};

extern struct processes_map processes SEC(".maps");
extern struct ended_map ended SEC(".maps");
extern struct threads_map threads SEC(".maps");
extern struct rings_map rings SEC(".maps");
extern struct ring_bell_map ring_bell SEC(".maps");
extern struct losses_map losses SEC(".maps");
extern struct probe_hits_map probe_hits SEC(".maps");

/* set by the loader before the programs are loaded */
extern const volatile u32 span_mode; /* enum span_mode */
extern const volatile bool filter_on; /* only PROCESS_SELECTED */
extern u32 processes_version;
extern const volatile bool no_args; /* command lines and paths stay out of the trace */
extern const volatile bool test_unreadable_code; /* of SONDE_TEST: no new code object can be read a second time */
extern const volatile u64 ring_size; /* bytes of data, a power of two */
extern const volatile u64 ring_mark; /* bytes in a ring beyond which its producers wake the loader */
#endif

#endif
