/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A finding is a cause of lost time, as data. A module is a file in this folder that reads the wait profile or events
 * and adds findings; findings.c ranks and merges them, finding_text.c writes the sentences. docs/adding-a-finding.md
 * shows how to add one.
 */
#pragma once

#include "findings/profile.h"
#include "model/activity.h"
#include "model/osrt_files.h"
#include "model/lock_blame.h"
#include "model/stacks.h"
#include "util/registry.h"

/*
 * The colours of time lines, each for several kinds of findings: its letter in text, its phrase, and the colour itself
 * on light and dark pages.
 */
#define FINDING_COLOURS_LIST(X)                                                        \
	X(COLOUR_RUN, "", "on a CPU", "#2f9e44", "#37b24d")                            \
	X(COLOUR_CPU, "w", "waiting for a CPU", "#f08c00", "#f08c00")                  \
	X(COLOUR_GIL, "g", "waiting for the GIL", "#e03131", "#f03e3e")                \
	X(COLOUR_LOCK, "l", "waiting for a lock", "#c2255c", "#e64980")                \
	X(COLOUR_NCCL, "n", "in NCCL", "#9c36b5", "#be4bdb")                           \
	X(COLOUR_LIBRARY, "c", "in CUDA or another library", "#5f3dc4", "#845ef7")     \
	X(COLOUR_CALL, "s", "in a system call", "#1c7ed6", "#339af0")                  \
	X(COLOUR_DISK, "d", "waiting for a disk", "#8d6e48", "#a98a63")                \
	X(COLOUR_IDLE, "i", "idle: waiting for something to do", "#ced4da", "#495057") \
	X(COLOUR_ASLEEP, ".", "asleep", "#e9ecef", "#343a40")

#define FINDING_COLOUR(colour, ...) colour,
enum finding_colour { FINDING_COLOURS_LIST(FINDING_COLOUR) FINDING_COLOURS };

struct finding_colour_text {
	const char *letter, *phrase, *light, *dark;
};

/*
 * What the time of threads means, as tables, findings and time lines state it. A closed list: the kind, its key in
 * JSON, the words before and after the share in a sentence ("waited 83% of 5.1 s for the disk"), the factor by which
 * its lost time is multiplied to rank it, and its colour. What was recorded of this time is an enum activity_cause,
 * which is a list of its own: waits in the same call may mean different things.
 */
#define FINDING_KINDS_LIST(X)                                                                                   \
	X(FINDING_COMPUTE, "compute", "ran on a CPU", "", 1, COLOUR_RUN)                                        \
	X(FINDING_GIL, "gil", "waited", " for the GIL", 1, COLOUR_GIL)                                          \
	X(FINDING_LOCK, "lock", "waited", " for a lock", 1, COLOUR_LOCK)                                        \
	X(FINDING_FILE_LOCK, "file-lock", "waited", " for a file lock", 1, COLOUR_LOCK)                         \
	X(FINDING_DISK, "disk", "waited", " for the disk", 1, COLOUR_DISK)                                      \
	X(FINDING_MEMORY, "memory", "waited", " for the kernel to reclaim or compact memory", 1, COLOUR_DISK)   \
	X(FINDING_QUOTA, "cpu-quota", "waited", " for a CPU: it was throttled by its CPU quota", 1, COLOUR_CPU) \
	X(FINDING_CPU, "cpu", "waited", " for a CPU while other threads ran", 0.7, COLOUR_CPU)                  \
	X(FINDING_STOPPED, "stopped", "was stopped", " by a signal", 1, COLOUR_ASLEEP)                          \
	X(FINDING_TRACED, "traced", "was stopped", " by a tracer", 1, COLOUR_ASLEEP)                            \
	X(FINDING_FROZEN, "frozen", "was frozen", " with its cgroup", 1, COLOUR_ASLEEP)                         \
	X(FINDING_AFFINITY, "affinity", "waited", " for the only CPU that it ran on", 1.1, COLOUR_CPU)          \
	X(FINDING_PEER, "peer", "waited", " for another process or machine", 0.9, COLOUR_CALL)                  \
	X(FINDING_SLEEP, "sleep", "slept", "", 0.06, COLOUR_CALL)                                               \
	X(FINDING_CHILD, "child", "waited", " for a child process", 0.3, COLOUR_CALL)                           \
	X(FINDING_RESULT, "result", "waited", " for another thread's or process's result", 0.3, COLOUR_CALL)    \
	X(FINDING_BACKWARD, "backward", "waited", " for its backward pass", 0.3, COLOUR_CALL)                   \
	X(FINDING_QUEUE, "queue", "waited", " for a queue", 0.9, COLOUR_CALL)                                   \
	X(FINDING_LOADER, "data-loader", "waited", " for batches of its DataLoader", 1, COLOUR_CALL)            \
	X(FINDING_SEMAPHORE, "semaphore", "waited", " for a semaphore (for example of a connection pool)", 1,   \
	  COLOUR_CALL)                                                                                          \
	X(FINDING_BARRIER, "barrier", "waited", " for other threads at a barrier", 0.3, COLOUR_CALL)            \
	X(FINDING_RANKS, "other-ranks", "waited", " for other ranks of its job", 0.9, COLOUR_CALL)              \
	X(FINDING_CONDITION, "condition", "waited", " for a condition or an event", 0.1, COLOUR_CALL)           \
	X(FINDING_GC, "gc", "collected garbage in", "", 1.3, COLOUR_LIBRARY)                                    \
	X(FINDING_IMPORT, "import", "imported modules in", "", 1.3, COLOUR_RUN)                                 \
	X(FINDING_STRAGGLER, "straggler", "made the other ranks wait", "", 1.3, COLOUR_RUN)                     \
	X(FINDING_STEP, "slow-steps", "lost", " to slow steps of training", 1.1, COLOUR_RUN)                    \
	X(FINDING_OVERHEAD, "small-operators", "spent", " between small operators of PyTorch", 0.8, COLOUR_RUN) \
	X(FINDING_TENSOR_COPIES, "tensor-copies", "spent", " copying tensors or reading their values", 0.9,     \
	  COLOUR_RUN)                                                                                           \
	X(FINDING_FALLBACK, "cpu-fallback", "spent", " in operators that fell back to the CPU", 1, COLOUR_RUN)  \
	X(FINDING_COMPILE, "compile", "spent", " compiling with torch.compile", 1.3, COLOUR_RUN)                \
	X(FINDING_GPU_WAIT, "gpu-wait", "waited", " for a GPU", 0.9, COLOUR_LIBRARY)                            \
	X(FINDING_GPU_COPIES, "gpu-copies", "waited", " for copies from or to a GPU", 1, COLOUR_LIBRARY)        \
	X(FINDING_GPU_MEMORY, "gpu-memory", "spent", " allocating and freeing GPU memory", 1, COLOUR_LIBRARY)   \
	X(FINDING_LAUNCHES, "launches", "spent", " launching kernels", 1, COLOUR_LIBRARY)                       \
	X(FINDING_NCCL, "nccl", "waited", " in NCCL", 0.9, COLOUR_NCCL)                                         \
	X(FINDING_LIBRARY, "library", "waited", " in a library", 0.9, COLOUR_LIBRARY)                           \
	X(FINDING_CALL, "syscall", "waited", " in a system call", 0.8, COLOUR_CALL)                             \
	X(FINDING_BLOCKED, "blocked", "waited uninterruptibly", " (for example for a disk)", 0.8, COLOUR_DISK)  \
	X(FINDING_ASLEEP, "asleep", "waited", " for an unknown reason", 0.02, COLOUR_ASLEEP)                    \
	X(FINDING_IDLE, "idle", "was idle", "", 0.001, COLOUR_IDLE)                                             \
	X(FINDING_GPU_IDLE, "gpu-idle", "had an idle GPU in", "", 1, COLOUR_RUN)                                \
	X(FINDING_GPU_ENDED, "gpu-ended", "had a GPU without work in", "", 1, COLOUR_RUN)                       \
	X(FINDING_GPU_CLOCK, "gpu-clock", "had a GPU at lower clocks in", "", 1, COLOUR_RUN)                    \
	X(FINDING_GPU_SHARED, "gpu-shared", "used the GPU of another process in", "", 0, COLOUR_RUN)            \
	X(FINDING_GPU_ERRORS, "gpu-errors", "had errors of a GPU in", "", 0, COLOUR_RUN)                        \
	X(FINDING_GPU_KERNEL, "gpu-kernel", "ran a kernel on GPUs in", "", 1, COLOUR_RUN)                       \
	X(FINDING_COPIES, "copies", "requested small copies in", "", 1, COLOUR_RUN)                             \
	X(FINDING_CALLS, "calls", "was in calls of a library in", "", 0.4, COLOUR_RUN)                          \
	X(FINDING_STUCK, "stuck", "was in a call that had not returned", "", 1, COLOUR_RUN)                     \
	X(FINDING_ERRORS, "errors", "got errors from calls", "", 0, COLOUR_RUN)                                 \
	X(FINDING_RESENT, "resent", "retransmitted segments", "", 0, COLOUR_RUN)                                \
	X(FINDING_FAULTS, "page-faults", "had page faults", "", 0, COLOUR_RUN)                                  \
	X(FINDING_GROWTH, "memory-growth", "left memory allocated in each step", "", 0, COLOUR_RUN)             \
	X(FINDING_UNRECORDED, "unrecorded", "did something that was not recorded", "", 0, COLOUR_RUN)

#define FINDING_KIND(kind, ...) kind,
enum finding_kind { FINDING_NONE, FINDING_KINDS_LIST(FINDING_KIND) FINDING_KINDS };

/* Stands in details, and in a text that is being written, between clauses; finding__write replaces it by a space. */
#define CLAUSE "\x1f"

enum finding_confidence {
	FINDING_MEASURED, /* events record the cause and its time */
	FINDING_ATTRIBUTED, /* the time is measured; the cause follows from samples, stacks or wakers */
	FINDING_GUESSED, /* the cause is the likeliest one; the text calls it a guess */
};

struct finding_code {
	char function[128]; /* "": not known */
	char file[256];
	u32 line; /* 0: not known */
	const char *source; /* text of the line, lives as long as the trace; NULL: not known */
	char native[128]; /* "deflate (libz.so.1)": the native function; "": none, or not known */
	bool is_foreign; /* the Python function called the native one through ctypes or cffi */
	char caller[192]; /* "handle (srv.py:12)": the code of another file that called the function; "": none */
	double caller_percent; /* part of the time for which it was the caller */
};

/* The thread or process that made others wait */
struct finding_counterpart {
	u32 pid, tid; /* 0: not known */
	struct finding_code code;
	char activity[352]; /* what it did meanwhile: "slept in clock_nanosleep" */
	struct finding_code activity_code; /* in which code, if `activity` names it */
	double percent; /* the share of the lost time that it caused */
	bool is_pause; /* it slept in a call such as nanosleep, while it served no request */
	bool is_holder; /* it held what was waited for, which need not be a lock */
	bool is_end_of_chain; /* other threads may be between it and those that waited */
	double cpus_percent; /* its share of the time of the CPUs that were waited for */
};

struct finding {
	enum finding_kind kind;
	enum finding_confidence confidence;
	u32 pid, tid; /* tid 0: several threads */
	u32 processes, threads; /* how many lost time */
	u64 lost_ns, wall_ns; /* summed over these threads: the lost time, all their time */
	u64 delay_ns; /* of lost_ns: runnable after the wait, while other threads ran */
	u64 in_code_ns; /* of the lost_ns spent waiting for a CPU, the part within the function; 0: not known */
	u64 ran_ns; /* time on a CPU of threads that needed one for lost_ns; 0: not counted */
	u64 times; /* number of waits; 0: not counted */
	double weight; /* by which findings are ranked: lost_ns times the factor of the kind */
	bool is_notice; /* no time was lost to it directly, but the user should know of it */
	bool has_device; /* the time is that of a GPU, not of threads */
	u32 device; /* the GPU's number in the process; without a process NVML's */
	bool is_measured_part; /* the times are of slices of time (record --cost-limit); findings.c scales the weight */
	/* asyncio tasks that waited while their thread was in the event loop, on average, and of how many; 0: none */
	double tasks, all_tasks;
	bool is_on_cpu; /* the lost time is in calls, while its threads ran on a CPU */
	bool is_background; /* a wait for something to do, which costs no more if more threads wait */
	struct finding_code code; /* the code that lost the time */
	const char *words; /* what was waited for, instead of the words of the kind; NULL: these */
	char call[64]; /* the call in which most of this time was lost */
	const struct event_meaning *calls; /* what the family of such calls states; NULL: nothing */
	u64 call_ns, call_times; /* of that call, for the same threads */
	char object[288]; /* a file, peer or lock that was waited for */
	struct finding_counterpart counterpart;
	char detail[512]; /* further figures, clauses */
	char report[48]; /* the report that shows more, with its filter */
	char advice[256]; /* "": none */
	char text[1536]; /* written by finding__write: a headline, then clauses */
	u16 clauses[16]; /* where in text each clause begins */
	u32 n_clauses;
};

struct findings;
struct cpu_sums;
struct gpu_gaps;
struct cuda_calls;
struct nccl_calls;
struct net_peers;
struct torch_steps;
struct rank_time;

/* What each module gets */
struct finding_input {
	const struct query *q;
	const struct activity *activity; /* for names of calls */
	const struct stacks *stacks;
	const struct profile *profile;
	const struct lock_blame *locks; /* which code held locks that others waited for */
	const struct osrt_files *files; /* names of files that calls waited for */
	const struct map *memory_limits; /* see findings/memory_limit.h */
	const struct cpu_sums *cpus; /* how all processes used CPUs, also those that are not selected */
	/* of GPUs, calls of CUDA and NCCL, TCP connections, and training loops of PyTorch */
	const struct gpu_gaps *gaps;
	const struct cuda_calls *cuda;
	const struct nccl_calls *nccl;
	const struct net_peers *net;
	const struct torch_steps *torch; /* NULL: no range of PyTorch was recorded */
	const struct rank_time *ranks; /* waits in collective operations */
};

struct finding_module {
	const char *name;
	bool decides_colours; /* it may change the kind of cells to one of another colour */
	/* Adds findings. 0 or negative errno. */
	int (*find)(const struct finding_input *in, struct findings *out);
};

#define FINDINGS(ident) REGISTER(finding_module, sonde_findings, ident)

/* findings.c: returns a new finding, valid until the next call; NULL: no memory. */
struct finding *findings__add(struct findings *out, enum finding_kind kind);

/* finding_text.c */
const char *finding_kind__key(enum finding_kind kind);
enum finding_colour finding_kind__colour(enum finding_kind kind);
const struct finding_colour_text *finding_colour__text(enum finding_colour colour);
/* Writes "waited for the disk", "ran on a CPU". Returns buf. */
char *finding_kind__phrase(enum finding_kind kind, char *buf, size_t size);
/* Returns the weight of an ns of this kind in ranking: 1 costs time, less is a consequence, next to nothing idles. */
double finding_kind__weight(enum finding_kind kind);
/* Fills code with a native function, and with its line unless a Python function is there. */
void finding_code__fill_native(struct finding_code *code, const struct stack_frame *f);
/* Fills code with the innermost frame of the user's code in the stack, and the native function. */
void finding_code__fill(struct finding_code *code, const struct stacks *stacks, u32 stack);
/* Fills code with the user's function that called the innermost one; leaves it empty if there is none. */
void finding_code__fill_caller(struct finding_code *code, const struct stacks *stacks, u32 stack);
/* Do both name the same function? Both name none: yes. */
bool finding_code__is_same(const struct finding_code *a, const struct finding_code *b);
struct text_buffer;
/* Adds `before` and "handle (srv.py:12)", else the native function, if the code is known. */
void finding_code__add(struct text_buffer *s, const char *before, const struct finding_code *code);
/* Writes the activity in the code. */
void finding_counterpart__set_activity(struct finding_counterpart *c, const struct finding_code *code,
				       const char *text);
/* Writes text and, if the code is known, `before` and "handle (srv.py:12)". */
void finding_code__write(const struct finding_code *code, const char *before, const char *text, char *buf, size_t size);
/* finding_sentence.c: writes the sentence of a kind that is not about what threads waited for; false: it is. */
bool finding__write_sentence(struct text_buffer *s, const struct finding *f, const struct query *q);
/* Writes f->text. */
void finding__write(struct finding *f, const struct query *q);
/*
 * Writes the command line that shows more: "sonde report FILE locks -p 4711", with the selection of this report. A
 * report whose events the trace lacks is replaced by one that has rows.
 */
#define FINDING_EVIDENCE (4 * 4096 + 512) /* each byte of a path takes up to four */
void finding__evidence(const struct finding *f, const struct query *q, char *buf, size_t size);
