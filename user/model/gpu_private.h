/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Within the GPU model. Events come nearly in order of time, some of them late: the shim's wait for CUPTI's buffers,
 * which a kernel that runs long holds back. So there are three queues, of calls, driver calls and work, each put
 * in order of time. A call enters its thread's spans as soon as it is read; work is emitted last.
 *
 *	gpu_facts.c	facts that are needed before: names, devices, which processes have a shim, threads' numbers
 *	gpu_fields.c	turns rows into items of queues
 *	gpu_queue.c	a queue
 *	gpu_join.c	joins work with its launch
 *	gpu_order.c	the same where CUPTI reports no driver calls
 *	gpu_host.c	calls; work that is known from calls alone
 *	gpu_memory.c	allocations
 *	gpu_names.c	C++ names
 */
#ifndef SONDE_MODEL_GPU_PRIVATE_H
#define SONDE_MODEL_GPU_PRIVATE_H

#include "core/shim.h"
#include "model/gpu.h"
#include "util/map.h"

/* Items begin with a u64, the time that they are ordered by. */
struct gpu_queue {
	char *items;
	size_t size;
	u32 n, allocated;
};

/* Room for one more at the end, zeroed; NULL: no memory. Gone with the next call. */
void *gpu_queue__add(struct gpu_queue *q);
/* By time; of equals, that which came first. 0 or -ENOMEM. */
int gpu_queue__sort(struct gpu_queue *q);
static inline void *gpu_queue__at(const struct gpu_queue *q, u32 i)
{
	return q->items + i * q->size;
}
/* Takes the first n away. */
void gpu_queue__drop(struct gpu_queue *q, u32 n);
void gpu_queue__free(struct gpu_queue *q);

/* What a kind of call asks for. */
enum gpu_ask { ASK_NOTHING, ASK_KERNEL, ASK_COPY, ASK_SET, ASK_GRAPH, ASK_ALLOCATION, ASK_RELEASE };

static inline bool gpu_ask__is_work(enum gpu_ask ask)
{
	return ask >= ASK_KERNEL && ask <= ASK_GRAPH;
}

/* A call recorded by uprobes, stored while work may be joined with it. */
struct gpu_span {
	u64 start, end;
	s64 ret;
	u64 stream;
	u64 number; /* of the launch, 0: none yet */
	u64 object; /* a kernel's function; an address of memory */
	u32 stack;
	u16 event, probe;
	u8 gil;
	u8 ask; /* enum gpu_ask */
	bool no_duration; /* only its entry was recorded: end is start */
};

/* In the queue of calls */
struct gpu_host_item {
	u64 end;
	struct gpu_span span;
	u32 pid, tid;
	u32 kind; /* as in the call's event: of a copy, or of memory */
	u32 device; /* the allocation's device if its event has it; else GPU_NO_DEVICE */
	bool pushed; /* is among its thread's spans */
	bool open;
	u64 bytes;
	u32 grid[3], block[3];
	u32 shared;
};

/* In the queue of driver calls */
struct gpu_driver_item {
	u64 end;
	u64 start;
	u32 pid, tid; /* tid: as the process's own namespace has it */
	u32 correlation, function;
	s32 result;
};

/* In the queue of work */
struct gpu_work_item {
	u64 end;
	u32 tid; /* of work that is known from a call alone */
	struct gpu_host_item *call; /* joined by order; else NULL */
	struct gpu_work work;
};

/* In the queue of allocations */
struct gpu_memory_item {
	u64 time;
	struct gpu_allocation a;
};

struct gpu_thread_key {
	u32 pid, tid;
};

/* The outermost calls of a thread: they do not overlap and are in order. */
struct gpu_thread {
	struct gpu_span *spans;
	u32 n;
	bool allocates; /* or releases memory */
};

/* A driver call by which work is joined. */
struct gpu_driver {
	u64 start, end;
	u64 number;
	struct gpu_span span; /* if probed */
	u32 pid, tid, ns_tid, correlation, function;
	u32 next; /* of the same bucket, plus one */
	s32 result;
	bool probed, used;
};

struct gpu_drivers {
	struct gpu_driver *ring;
	u32 size, first, n; /* size: a power of two */
	u32 *buckets; /* index into ring plus one; as many as the ring has room */
};

struct gpu_process {
	u64 clock_error; /* ns */
	u64 on, on_again, off; /* when the shim was switched on first and last, and off last; 0: not known */
	bool has_shim; /* there are device times at some time */
	bool has_calls; /* gpu_call, too */
	bool has_memory; /* gpu_memory */
};

struct gpu_text {
	char *text;
};

struct gpu_model {
	struct trace *trace;
	const struct names *names;
	const struct schema *schema;

	/* for good */
	struct map processes; /* u32 pid -> struct gpu_process */
	struct map devices; /* pid, device -> struct gpu_device_facts and its model's text */
	struct map kernels; /* pid, hash -> struct gpu_text */
	struct map functions; /* pid, handle -> struct gpu_text: name from event cudadrv_function, or a made-up one */
	struct map tids; /* pid, tid of its namespace -> u32 tid */
	struct map demangled; /* hash of the mangled name -> struct gpu_cpp_name */
	u64 text_bytes; /* of all names */

	/* of a read */
	u64 from, to;
	struct trace_ids pids;
	const struct gpu_listener *listener;
	void *arg;
	struct gpu_coverage coverage;
	struct gpu_fields *fields; /* of each event of the schema; gpu_fields.c */
	struct gpu_queue calls, driver, work, memory;
	struct gpu_queue order_calls, order_work; /* gpu_order.c */
	bool order_full;
	struct gpu_drivers drivers;
	struct map threads; /* struct gpu_thread_key -> struct gpu_thread */
	u64 spans; /* of all threads */
	struct map streams; /* -> u64, when what was last in it ended */
	struct map addresses; /* pid, address -> what is there */
	u64 launches;
	u64 newest, flushed;
	u16 last_kind;
};

/* gpu_facts.c */
int gpu_facts__load(struct gpu_model *m);
void gpu_facts__free(struct gpu_model *m);
/* NULL: the process has no events of a shim. */
const struct gpu_process *gpu_facts__process(const struct gpu_model *m, u32 pid);
const char *gpu_facts__kernel(const struct gpu_model *m, u32 pid, u64 hash);
/* The name of a kernel by the handle that it is launched with. NULL: no memory. */
const char *gpu_facts__function(struct gpu_model *m, u32 pid, u64 handle);
/* ns by which its device's clock may differ from the host's; bounded */
u64 gpu_facts__slack(const struct gpu_model *m, u32 pid);
/* A thread by its id in its own pid namespace; 0: not known. */
u32 gpu_facts__tid(const struct gpu_model *m, u32 pid, u32 ns_tid);
int gpu_facts__set_tid(struct gpu_model *m, u32 pid, u32 ns_tid, u32 tid);

/* gpu_fields.c */
int gpu_fields__new(struct gpu_model *m);
/* The event kinds to read: NULL-terminated, to be freed. NULL: no memory. */
const struct schema_event **gpu_fields__kinds(const struct gpu_model *m);
int gpu_fields__take(struct gpu_model *m, const struct rows *rows);

/* gpu_join.c */
int gpu_join__push(struct gpu_model *m, const struct gpu_host_item *c);
/* The outermost call of the thread that contains these times, give or take slack ns; NULL: none was recorded. */
struct gpu_span *gpu_join__outermost(const struct gpu_model *m, u32 pid, u32 tid, u64 start, u64 end, u64 slack);
int gpu_join__take_driver(struct gpu_model *m, const struct gpu_driver_item *d);
bool gpu_join__has_driver(const struct gpu_model *m, u32 pid, u32 correlation);
/* false: not joined */
bool gpu_join__launch(struct gpu_model *m, const struct gpu_work_item *w, struct gpu_launch *out);
/* The call that made an allocation or release, and its thread; NULL: none was recorded. */
const struct gpu_span *gpu_join__memory(const struct gpu_model *m, const struct gpu_allocation *a, u32 *tid);
void gpu_join__end(struct gpu_model *m);
void gpu_join__free(struct gpu_model *m);

/* gpu_order.c: is the process one of those? */
bool gpu_order__wants(const struct gpu_model *m, u32 pid);
/* Adds the work of a call, if no other call reports that work. */
int gpu_order__take_call(struct gpu_model *m, const struct gpu_host_item *c);
int gpu_order__take_work(struct gpu_model *m, const struct gpu_work_item *w);
/* Too many items wait: they are emitted without their launch. */
int gpu_order__give_up(struct gpu_model *m);
int gpu_order__end(struct gpu_model *m);

/* gpu.c */
int gpu_model__emit_work(struct gpu_model *m, const struct gpu_work_item *i);

/* gpu_host.c */
const char *gpu_host__function(const struct gpu_model *m, u16 event, u16 probe);
/* Emits the call, and adds the work that is known from it alone to the queue of work. */
int gpu_host__emit(struct gpu_model *m, const struct gpu_host_item *c);

/* gpu_memory.c */
/* In a process without a shim the call is an allocation or release. */
int gpu_memory__take_call(struct gpu_model *m, const struct gpu_host_item *c);
int gpu_memory__emit(struct gpu_model *m, struct gpu_memory_item *i);

/* gpu_driver_names.c: "cuLaunchKernel"; NULL: not known here */
const char *gpu_driver__function(u32 cbid);

/* gpu_names.c */
void gpu_names__free(struct gpu_model *m);

/* Does it overlap the selected time? */
static inline bool gpu_model__wants(const struct gpu_model *m, u64 start, u64 end)
{
	return (end > m->from || (end == start && end >= m->from)) && (!m->to || start < m->to);
}

#endif
