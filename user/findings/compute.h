/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process computed, by its samples */
#pragma once

#include "findings/callee.h"
#include "findings/finding.h"

struct computed {
	u64 samples, ns; /* of the function */
	u64 all_ns, all_gil_ns; /* of the process; all_gil_ns: its threads held the GIL */
	u64 native_ns, kernel_ns; /* parts of ns: in native functions outside of the interpreter, in the kernel */
	u64 fault_ns; /* part of kernel_ns: for page faults */
	u64 gc_ns; /* part of ns: in Python's garbage collector */
	u64 gil_ns; /* part of ns: the thread held the GIL */
	u64 all_gc_ns; /* part of all_ns: in the garbage collector */
	u64 passing_ns; /* part of ns: to pickle and copy data for other processes */
	u32 stack; /* a stack of the line with most samples */
	struct callee callee; /* what it mostly called */
	char calls[96]; /* ", in calls of read": the function that called the kernel for most of its time there; "": not known */
	char native[128]; /* the native function outside of the interpreter with most samples; "": none */
};

/* code: number of a function (struct stack_frame.code); 0: that with most samples. c->samples 0: there are none. */
void computed__of(struct computed *c, const struct finding_input *in, u32 pid, u32 code);
/* The same of the function with most samples of this thread; if it has none, of that of the process. */
void computed__of_thread(struct computed *c, const struct finding_input *in, struct thread_key thread);
/* The same of the function that held the GIL for most sampled time, in this thread, or with tid 0 in the process. */
void computed__of_gil(struct computed *c, const struct finding_input *in, u32 pid, u32 tid);
/* Fills the code of its function, of a process without Python the function that called most of what it computed. */
void computed__fill_code(const struct finding_input *in, struct thread_key thread, const struct computed *c,
			 struct finding_code *code);
/* Returns whether it mostly pickled and copied data for other processes. */
bool computed__passes_data(const struct computed *c);
/* Writes what code with these samples did: "computed in C: deflate (libz.so.1)". Returns buf; "": nothing is known. */
char *computed__activity(const struct computed *c, char *buf, size_t size);
/*
 * Fills the code, the figures and the report of a finding about time on a CPU. Returns the part of the process's CPU
 * time that its garbage collector took, 0 to 1: a finding of its own states it.
 */
double computed__complete(const struct finding_input *in, struct finding *f);
