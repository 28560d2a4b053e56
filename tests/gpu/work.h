/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of tests/gpu/work share: a GPU with the kernels loaded, and calls that are written down. */
#pragma once

#include "driver.h"
#include "truth.h"

#define ADD_N	    4096 /* floats of a vector_add */
#define LANE_BYTES  (1 << 20)
#define LANE_RESULT (LANE_BYTES / 2 / sizeof(float)) /* index of the second half */
#define STAMPS	    64 /* kernels that can be timed by their own clock */

struct gpu {
	cu_device device;
	cu_context context;
	cu_module module;
	cu_function add, spin, empty;
	uint64_t khz; /* cycles a millisecond */
	bool simulated;
};

/* A stream and memory of its own. */
struct lane {
	const struct gpu *gpu;
	cu_stream stream;
	uint32_t number; /* of the stream in the truth, from 1 */
	cu_address memory[3];
	float *pinned, *pageable; /* LANE_BYTES each; what is copied from the device comes into the second half */
};

/* CUDA, device 0 and its primary context; current in this thread. */
void gpu__open(struct gpu *g);
/* Kernels, in the current context. */
void gpu__load(struct gpu *g);
/* What a spin of so many ns is given; at the clock that the driver reports, which the GPU need not run at. */
uint64_t gpu__cycles(const struct gpu *g, uint64_t ns);

void lane__open(struct lane *l, const struct gpu *g, uint32_t number);
void lane__close(struct lane *l);
struct op *lane__add(struct lane *l);
struct op *lane__empty(struct lane *l);
/* stamp: where the kernel writes its own times, 0: nowhere */
struct op *lane__spin(struct lane *l, uint64_t ns, cu_address stamp);
/* CUpti_ActivityMemcpyKind 1, 2 or 8 */
struct op *lane__copy(struct lane *l, uint32_t kind, size_t bytes, bool pinned, bool asynchronous);
struct op *lane__set(struct lane *l, unsigned char value, size_t bytes);
/* Those of the calls that not every libcuda has. */
void lane__rest(struct lane *l, int n);
void lane__wait(struct lane *l);
/* A graph of four nodes, one after the other: kernel, kernel, set, kernel. */
cu_graph_exec lane__graph(struct lane *l);
void lane__launch(struct lane *l, cu_graph_exec exec);
void gpu__wait(void);

cu_address op__alloc(size_t bytes);
void op__free(cu_address address);

/*
 * Switches the shim on or off as a tracer would, by the consumer's signals, and waits until it has said something,
 * half a minute at most. Returns how long that took, ns; 0: there is none.
 */
uint64_t shim__switch(bool on);

/* work.c, work_odd.c: what the program can do, by name */
int work__run(struct gpu *g);
int work__many(struct gpu *g, uint64_t n);
int work__loop(struct gpu *g);
int work__late(struct gpu *g);
int work__again(struct gpu *g);
int work__reset(struct gpu *g);
int work__fork(struct gpu *g, const char *self);
int work__exit(struct gpu *g, bool at_once);
int work__contexts(struct gpu *g);
