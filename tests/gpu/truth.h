/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program of tests/gpu did on the GPU, by its own account: a line of JSON for each thing, written to the
 * file that WORK_TRUTH names when it ends. Times are CLOCK_MONOTONIC, ns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum op_kind { OP_KERNEL, OP_COPY, OP_SET, OP_SYNC, OP_GRAPH, OP_ALLOC, OP_FREE };

struct op {
	enum op_kind op;
	const char *name; /* of a kernel */
	uint32_t tid, stream; /* stream: the program's own number; 0: the default one */
	uint32_t phase; /* see truth__phase */
	uint32_t kind; /* of a copy: CUpti_ActivityMemcpyKind; of a synchronisation: CUpti_ActivitySynchronizationType */
	uint32_t grid, block;
	uint64_t begin, end; /* of the call */
	uint64_t bytes, address;
	uint64_t event_ns; /* what CUDA's events say it took, 0: not asked */
	uint64_t inside_ns; /* what the kernel itself saw on the device's timer, 0: not asked */
};

uint64_t truth__now(void);
/* An op whose call begins now. It stays where it is. */
struct op *truth__begin(enum op_kind kind, uint32_t stream);
static inline void truth__end(struct op *o)
{
	o->end = truth__now();
}
/* What follows belongs to another part of the program: the checks look at each by itself. From any one thread, when
 * the GPU is idle. Recorded with its time. */
void truth__phase(const char *name);
/* Something to know: a key and a value of JSON. */
void truth__fact(const char *key, const char *json);
void truth__fact_text(const char *key, const char *text);
void truth__fact_number(const char *key, long long number);
/* To the file; again: more of it. */
void truth__write(void);
