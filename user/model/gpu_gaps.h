/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the thread that launched the work after a gap did during the gap. A gap is cut into parts of one cause each that
 * tile it. Until the launch returned, the cause is the thread's activity; after that it is the device or the stream.
 * So these causes are a list of their own, beside those of threads' time (findings/finding.h).
 */
#pragma once

#include "model/gpu_busy.h"
#include "model/texts.h"

enum gap_cause {
	GAP_GIL, /* waited for the GIL; object: the holder */
	GAP_SYNC, /* in a CUDA call that waits for a device */
	GAP_CUDA, /* in another CUDA call */
	GAP_NCCL,
	GAP_LIBRARY, /* in another library's call */
	GAP_READ, /* waited for data; object: the file */
	GAP_CALL, /* in another system call */
	GAP_LOCK,
	GAP_DISK,
	GAP_SLEEP, /* in a call such as nanosleep */
	GAP_CPU, /* runnable while other threads used the CPUs */
	GAP_OFF, /* off the CPU, in no recorded call */
	GAP_PYTHON, /* on a CPU; object: the function */
	GAP_RUN, /* on a CPU in other code */
	GAP_GC, /* in Python's garbage collection */
	GAP_QUEUE, /* the work was launched, but the device had not begun it */
	GAP_EVENT, /* the work was launched, but its stream waited for an event */
	GAP_UNKNOWN,
	GAP_SHORT, /* gaps that are only summed up */
	GAP_CAUSES
};

struct gap_part {
	enum gap_cause cause;
	u32 object; /* number of a text, such as the holder; 0: none */
	u64 ns;
};

struct gap_sum_key {
	u32 device; /* index */
	u32 cause, object;
};

struct gap_sum {
	u64 ns, gaps; /* gaps: those with such a part; one that several windows have counts once */
	const struct gpu_gap *last; /* the last one that was counted */
};

/* One of the longest gaps. */
struct gap_detail {
	const struct gpu_gap *gap;
	struct gap_part *parts; /* largest first */
	u32 n;
};

struct gpu_gaps {
	struct gpu_busy *busy;
	struct map texts; /* the texts of the objects, see texts.h */
	struct map sums; /* struct gap_sum_key -> struct gap_sum */
	struct gap_detail *details; /* by rank, the longest first */
	u32 n_details;
	struct map tails; /* u32 device -> struct gap_detail: the device's tail, if it has one */
	bool guessed; /* a gap had no sample, so a function was named by the next launch's stack */
};

/* Events in each window of a trace; tests set small numbers. */
extern u32 gpu_busy__window, gpu_gaps__window;

/*
 * Explains b's gaps, which are in order; at most max of the longest get details. 0 or negative errno; free in any
 * case.
 */
int gpu_gaps__read(struct gpu_gaps *g, struct gpu_busy *b, u32 max);
void gpu_gaps__free(struct gpu_gaps *g);
/* gpu_causes.c: "gil": the key in JSON and CSV */
const char *gap_cause__key(enum gap_cause cause);
/* "waited for the GIL, held by decode (loader.py)" */
char *gap_cause__text(enum gap_cause cause, const char *object, char *buf, size_t size);
