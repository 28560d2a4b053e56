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

/* A closed list; finding_text.c has the key and the phrase of each. */
enum finding_kind {
	FINDING_NONE,
	FINDING_COMPUTE, /* ran on a CPU */
	FINDING_GIL, /* waited for the GIL */
	FINDING_LOCK, /* waited for a lock that another thread held */
	FINDING_FILE_LOCK, /* waited for a lock of a file (flock, fcntl) that another process or thread held */
	FINDING_DISK, /* waited for a disk */
	FINDING_MEMORY, /* waited for the kernel to reclaim or compact memory */
	FINDING_QUOTA, /* was runnable, but throttled by a CPU quota */
	FINDING_CPU, /* was runnable while other threads used the CPUs */
	FINDING_AFFINITY, /* was runnable while the process ran on one CPU only */
	FINDING_PEER, /* waited for another process or machine: an answer, data of a pipe or socket */
	FINDING_SLEEP, /* was in a call that sleeps for a given time, such as nanosleep */
	FINDING_CHILD, /* waited for a child process */
	FINDING_RESULT, /* waited for a thread or worker process to finish */
	FINDING_QUEUE, /* waited for data, or for room, in a queue */
	FINDING_LOADER, /* waited for the next batch of a DataLoader, mostly of its worker processes */
	FINDING_SEMAPHORE, /* waited for a permit of a semaphore, such as that of a connection pool */
	FINDING_BARRIER, /* waited for other threads at a barrier */
	FINDING_CONDITION, /* waited for a condition or event */
	FINDING_GC, /* collected garbage */
	FINDING_IMPORT, /* imported modules */
	FINDING_STRAGGLER, /* was the rank that the others waited for in distributed training */
	FINDING_STEP, /* took longer for some training steps than for others */
	FINDING_OVERHEAD, /* ran between small operators of PyTorch */
	FINDING_TENSOR_COPIES, /* copied and converted tensors, or read their values */
	FINDING_COMPILE, /* compiled functions with torch.compile */
	FINDING_GPU_WAIT, /* waited for a GPU in a call of CUDA */
	FINDING_NCCL, /* waited in a call of NCCL */
	FINDING_LIBRARY, /* waited in another library, or in a call of CUDA that does not wait for a GPU */
	FINDING_CALL, /* waited in another system call */
	FINDING_BLOCKED, /* was in an uninterruptible wait, in no recorded call */
	FINDING_ASLEEP, /* was in an interruptible wait, in no recorded call */
	FINDING_IDLE, /* waited for something to do */
	FINDING_GPU_IDLE, /* a GPU had no work between its first and its last */
	FINDING_GPU_ENDED, /* a GPU had no work from its last until the end */
	FINDING_GPU_KERNEL, /* one kernel took most of the GPUs' time */
	FINDING_COPIES, /* requested many small copies */
	FINDING_CALLS, /* was in calls of a library */
	FINDING_STUCK, /* was in a call that had not returned at the end */
	FINDING_ERRORS, /* got errors from calls */
	FINDING_RESENT, /* TCP segments were retransmitted */
	FINDING_FAULTS, /* had many page faults */
	FINDING_GROWTH, /* left memory of tensors allocated in each step of training */
	FINDING_UNRECORDED, /* did something that was not recorded */
	FINDING_KINDS
};

enum finding_confidence {
	FINDING_MEASURED, /* events record the cause and its time */
	FINDING_ATTRIBUTED, /* the time is measured; the cause follows from samples, stacks or wakers */
	FINDING_GUESSED, /* the cause is the likeliest one; the text calls it a guess */
};

struct finding_code {
	char function[128]; /* "": not known */
	char file[256];
	u32 line; /* 0: not known */
	char native[128]; /* "deflate (libz.so.1)": the native function; "": none, or not known */
};

/* The thread or process that made others wait */
struct finding_counterpart {
	u32 pid, tid; /* 0: not known */
	struct finding_code code;
	char activity[352]; /* what it did meanwhile: "slept in clock_nanosleep" */
	double percent; /* the share of the lost time that it caused */
	bool is_pause; /* it slept in a call such as nanosleep, while it served no request */
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
	u32 device; /* the GPU's number in the process */
	bool is_background; /* a wait for something to do, which costs no more if more threads wait */
	struct finding_code code; /* the code that lost the time */
	char call[64]; /* the call in which most of this time was lost */
	u64 call_ns, call_times; /* of that call, for the same threads */
	char object[288]; /* a file, peer or lock that was waited for */
	struct finding_counterpart by;
	char detail[256]; /* further figures, a clause */
	char report[48]; /* the report that shows more, with its filter */
	char advice[256]; /* "": none */
	char text[1536]; /* written by finding__write */
};

struct findings;
struct gpu_gaps;
struct cuda_calls;
struct nccl_calls;
struct net_peers;
struct torch_steps;

/* What each module gets */
struct finding_input {
	const struct query *q;
	const struct activity *activity; /* for names of calls */
	const struct stacks *stacks;
	const struct profile *profile;
	const struct lock_blame *locks; /* which code held locks that others waited for */
	const struct osrt_files *files; /* names of files that calls waited for */
	/* of GPUs, calls of CUDA and NCCL, TCP connections, and training loops of PyTorch */
	const struct gpu_gaps *gaps;
	const struct cuda_calls *cuda;
	const struct nccl_calls *nccl;
	const struct net_peers *net;
	const struct torch_steps *torch; /* NULL: no range of PyTorch was recorded */
};

struct finding_module {
	const char *name;
	/* Adds findings. 0 or negative errno. */
	int (*find)(const struct finding_input *in, struct findings *out);
};

#define FINDINGS(ident) REGISTER(finding_module, sonde_findings, ident)

/* findings.c: returns a new finding, valid until the next call; NULL: no memory. */
struct finding *findings__add(struct findings *out, enum finding_kind kind);

/* finding_text.c */
const char *finding_kind__key(enum finding_kind kind);
/* Writes "waited for the disk", "ran on a CPU". Returns buf. */
char *finding_kind__phrase(enum finding_kind kind, char *buf, size_t size);
/* Returns the weight of an ns of this kind in ranking: 1 costs time, less is a consequence, next to nothing idles. */
double finding_kind__weight(enum finding_kind kind);
/* Fills code with the innermost frame of the user's code in the stack, and the native function. */
void finding_code__fill(struct finding_code *code, const struct stacks *stacks, u32 stack);
/* Fills code with the user's function that called the innermost one; leaves it empty if there is none. */
void finding_code__fill_caller(struct finding_code *code, const struct stacks *stacks, u32 stack);
struct text_buffer;
/* Adds `before` and "handle (srv.py:12)", else the native function, if the code is known. */
void finding_code__add(struct text_buffer *s, const char *before, const struct finding_code *code);
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
