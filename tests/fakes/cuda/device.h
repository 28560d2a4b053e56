/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The simulated machine, inside libcuda's double. All under machine.lock. */
#pragma once

#include "fake.h"

#include <pthread.h>

#define DEVICES_MAX  16
#define CONTEXTS_MAX 32 /* the first DEVICES_MAX are the devices' primary ones */

struct stream {
	uint32_t device, id;
	uint32_t owner; /* of machine.contexts */
	uint64_t available; /* when what was put into it will have ended */
	const struct fake_kernel *waiting; /* its last kernel, whose end is not known yet; NULL: none */
	struct fake_record waiting_record;
};

struct event {
	uint64_t at; /* when it will have happened, 0: not recorded */
	uint32_t id;
};

struct graph_node {
	enum fake_op op;
	const struct fake_kernel *kernel;
	uint64_t bytes;
	uint64_t id;
};

struct graph {
	struct graph_node *nodes;
	uint32_t n;
	uint32_t id;
};

struct context {
	bool there;
	uint32_t device, id;
	struct stream null_stream;
};

struct machine {
	pthread_mutex_t lock;
	fake_tool tool;
	int truth;
	bool devices_known, broken;
	uint32_t devices;
	uint64_t latency, gbps, set_gbps;
	struct context contexts[CONTEXTS_MAX];
	uint32_t resets, created;
	struct stream **streams;
	uint32_t n_streams;
	uint32_t events, graphs;
	uint64_t nodes, memory;
};

extern struct machine machine;

void truth__flush(void);
void machine__init(void);
void machine__tell(const struct fake_record *r);
/* Whether this thread is within a call of libcudart. */
bool machine__is_in_runtime(void);
/* Makes the context if it is not there. */
struct context *machine__context(uint32_t number);
struct stream *machine__null_stream(uint32_t context);
struct stream *machine__new_stream(uint32_t context);
/* The context and all in it ends; CUPTI gets to know it. */
void machine__destroy(uint32_t context);
void machine__enqueue(struct stream *s, struct fake_record *r, uint64_t ns);
/* The same for a kernel that waits for other processes. */
void machine__enqueue_waiting(struct stream *s, struct fake_record *r, const struct fake_kernel *k);
/* Waits until the end of such a kernel is known. Without the lock. */
void machine__settle(struct stream *s);
void machine__wait_until(uint64_t moment);
uint64_t machine__busy_until(uint32_t context);
/* How long a kernel that is launched with these parameters runs. */
uint64_t kernel__ns(const struct fake_kernel *k, void **parameters);
