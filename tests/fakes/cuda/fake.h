/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doubles of libcuda, libcudart and libcupti around one simulated machine with
 * GPUs, for tests and the demo where there is none. Signatures and record layouts
 * are those of NVIDIA's own headers, CUDA 12 and 13; what they do is only what the
 * tests need: streams run in order, kernels take the time that they are given,
 * copies go by bandwidth, and all that happens is written down as the truth.
 *
 * Environment:
 *	FAKE_CUDA	devices=1,latency_ns=2000,gbps=10,set_gbps=100,init_ms=0,mps=0
 *	FAKE_CUDA_TRUTH	a file: a line for everything, appended by each process
 *	FAKE_CUPTI	ppm=0,jitter_ns=0	CUPTI's clock
 *			taken=0,taken_ms=0	another tool has it, for ever or at first
 *			drop=0			records that it says it has dropped
 *			reset_loses=0		what waits when a context ends is dropped
 *			CALL=0			the result of a call: version, timestamp, subscribe, unsubscribe,
 *						register, enable, dump, disable, driver_api, runtime_api, flush, next,
 *						dropped, get_thread, set_thread, result_string
 *			CALL_after=0		from this call of it on
 *			CALL_ms=0, CALL_hang=0	it takes so long; it never returns
 *			next_stuck=0		the next record is the same one
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_WAITS UINT64_MAX

/* What a kernel is here: what cudaLaunchKernel and cuLaunchKernel get as the function. */
struct fake_kernel {
	const char *name; /* mangled */
	uint64_t ns;
	uint32_t ns_parameter; /* or which of the launch's parameters says it, from 1; only libcuda's */
	/*
	 * If ns is FAKE_WAITS: when it ends, if it starts then, 0: not known yet, as it waits for kernels of other
	 * processes. It is called when the kernel is launched, and again until it is known. Most programs of the tests
	 * have only the members before it.
	 */
	uint64_t (*end)(const struct fake_kernel *k, uint64_t start);
};

enum fake_op {
	FAKE_KERNEL,
	FAKE_COPY,
	FAKE_SET,
	FAKE_SYNC,
	FAKE_GRAPH,
	FAKE_MEMORY,
	FAKE_CALL, /* of libcuda */
	FAKE_RUNTIME_CALL, /* of libcudart */
	FAKE_DEVICE,
	FAKE_CONTEXT,
	FAKE_STREAM,
	FAKE_RESET, /* a context ends */
	FAKE_NOTE, /* what a double has to say of itself: bytes and name */
};

/* One thing that happened or will: times are CLOCK_MONOTONIC ns. */
struct fake_record {
	enum fake_op op;
	uint64_t start, end;
	uint32_t tid, correlation, device, context, stream;
	const char *name; /* of a kernel */
	uint32_t grid[3], block[3], shared;
	uint64_t bytes, address;
	uint32_t kind; /* of a copy, synchronization, memory operation; a call's cbid; a set's value */
	uint32_t from_memory, to_memory, peer; /* of a copy; peer: the other device + 1 */
	uint32_t graph;
	uint64_t node;
	uint32_t result, asynchronous;
	bool nested; /* a call of libcuda within one of libcudart */
};

/* libcupti's: gets everything as it is known. Returns whether it keeps it. */
typedef bool (*fake_tool)(const struct fake_record *r);

/* Of libcuda's double, for the other two. */
void fake__set_tool(fake_tool tool);
/* A number of the environment variable's list, or def. */
uint64_t fake__setting(const char *variable, const char *key, uint64_t def);
uint64_t fake__now(void);
uint32_t fake__tid(void);
/* A line of the truth that is no event of the machine. */
void fake__note(const char *name, uint64_t n);
/* Reports existing devices, contexts and streams. */
void fake__dump(enum fake_op op, fake_tool tool);
/* How many executable graphs were made: they are numbered from 1. */
uint32_t fake__graphs(void);
/* A correlation id for what this thread calls next, and the calls within. */
uint32_t fake__enter(void);
void fake__leave(void);
/* The same for a call of libcudart, which is reported when it ends if it has a cbid. */
void fake__enter_runtime(void);
void fake__leave_runtime(uint32_t cbid, uint64_t start, uint32_t result);
