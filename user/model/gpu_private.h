/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of the GPU model. Events come nearly in order of time, some of them late: the shim waits for
 * CUPTI's buffers, which a long kernel holds back. So calls, driver calls and work have a queue each, which puts them
 * in order of time. A call enters its thread's spans as soon as it is read; work is emitted last.
 *
 *	gpu_facts.c	facts that are needed first: names, devices, which processes have a shim, threads' numbers
 *	gpu_fields.c	turns rows into items of queues
 *	gpu_queue.c	a queue
 *	gpu_join.c	joins work with its launch
 *	gpu_order.c	joins work with its launch where CUPTI reports no driver calls
 *	gpu_host.c	calls; work that is known from calls alone
 *	gpu_memory.c	allocations
 *	gpu_names.c	C++ names
 */
#pragma once

#include "core/shim.h"
#include "model/gpu.h"
#include "util/map.h"

/* Items begin with a u64: the time by which they are sorted. */
struct gpu_queue {
	char *items;
	size_t size;
	u32 n, allocated;
};

/* Returns a zeroed item at the end, valid until the next call; NULL: no memory. */
void *gpu_queue__add(struct gpu_queue *q);
/* Sorts by time; items of equal time stay in order. 0 or -ENOMEM. */
int gpu_queue__sort(struct gpu_queue *q);
static inline void *gpu_queue__at(const struct gpu_queue *q, u32 i)
{
	return q->items + i * q->size;
}
/* Removes the first n items. */
void gpu_queue__drop(struct gpu_queue *q, u32 n);
void gpu_queue__free(struct gpu_queue *q);

/* What a call requests */
enum gpu_request {
	REQUEST_NONE,
	REQUEST_KERNEL,
	REQUEST_COPY,
	REQUEST_SET,
	REQUEST_GRAPH,
	REQUEST_ALLOCATION,
	REQUEST_RELEASE
};

static inline bool gpu_request__is_work(enum gpu_request request)
{
	return request >= REQUEST_KERNEL && request <= REQUEST_GRAPH;
}

/* A call recorded by uprobes, stored while work may be joined with it. */
struct gpu_span {
	u64 start, end;
	s64 ret;
	u64 stream;
	u64 number; /* of the launch, 0: none yet */
	u64 object; /* handle of a kernel's function, or an address of memory */
	u32 stack;
	u16 event, probe;
	u8 gil;
	u8 request; /* enum gpu_request */
	bool no_duration; /* only its entry was recorded: end is start */
};

/* Item of the queue of calls */
struct gpu_host_item {
	u64 end;
	struct gpu_span span;
	u32 pid, tid;
	u32 kind; /* the kind of copy or memory in the call's event */
	u32 device; /* the allocation's device if its event has it; else GPU_NO_DEVICE */
	bool pushed; /* stored in its thread's spans */
	bool open;
	bool untimed; /* that, or its duration is not known */
	u64 bytes;
	u32 grid[3], block[3];
	u32 shared;
};

/* A bit of `function` of a call that CUPTI recorded: libcudart's, not libcuda's */
#define GPU_CALL_RUNTIME (1u << 31)

/* Item of the queue of driver calls */
struct gpu_driver_item {
	u64 end;
	u64 start;
	u32 pid, tid; /* tid in the process's own pid namespace */
	u32 correlation, function;
	s32 result;
};

/* Item of the queue of work */
struct gpu_work_item {
	u64 end;
	u32 tid; /* of work that is known from a call alone */
	struct gpu_host_item *call; /* joined by order; else NULL */
	struct gpu_work work;
};

/* Item of the queue of allocations */
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
	bool allocates; /* has calls that allocate or release memory */
};

/* A driver call, by which work is joined with its launch */
struct gpu_driver {
	u64 start, end;
	u64 number;
	struct gpu_span span; /* if probed */
	u32 pid, tid, ns_tid, correlation, function;
	u32 next; /* index in ring plus one of the next call in the bucket */
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
	u64 first_on, last_on, last_off; /* when the shim was first and last switched on, and last off; 0: not known */
	bool has_shim; /* the trace has events of a shim */
	bool has_calls; /* the trace has gpu_call events */
	bool has_memory; /* the trace has gpu_memory events */
};

struct gpu_text {
	char *text;
};

struct gpu_model {
	struct trace *trace;
	const struct names *names;
	const struct schema *schema;

	/* set once by gpu_model__new */
	struct map processes; /* u32 pid -> struct gpu_process */
	struct map devices; /* pid, device -> struct gpu_device_facts and its model's text */
	struct map kernels; /* pid, hash -> struct gpu_text */
	struct map functions; /* pid, handle -> struct gpu_text: cudadrv_function's name or "kernel 0x.." */
	struct map tids; /* pid, tid of its namespace -> u32 tid */
	struct map demangled; /* hash of the mangled name -> struct gpu_cpp_name */
	u64 text_bytes; /* of all stored names */

	/* set by each gpu_model__read */
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
	struct map unended; /* u32 pid -> struct gpu_unended */
	struct map streams; /* struct stream_key -> u64 end of the stream's last work */
	struct map addresses; /* pid, address -> struct address */
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
/* Returns the kernel's name for the handle that a launch has. NULL: no memory. */
const char *gpu_facts__function(struct gpu_model *m, u32 pid, u64 handle);
/* Returns the ns by which the process's device clock may differ from the host's; at most 1 ms. */
u64 gpu_facts__slack(const struct gpu_model *m, u32 pid);
/* Returns the tid for a tid in the process's own pid namespace; 0: not known. */
u32 gpu_facts__tid(const struct gpu_model *m, u32 pid, u32 ns_tid);
int gpu_facts__set_tid(struct gpu_model *m, u32 pid, u32 ns_tid, u32 tid);

/* gpu_fields.c */
int gpu_fields__new(struct gpu_model *m);
/* The event kinds to read: NULL-terminated, to be freed. NULL: no memory. */
const struct schema_event **gpu_fields__kinds(const struct gpu_model *m);
int gpu_fields__take(struct gpu_model *m, const struct rows *rows);

/* gpu_join.c */
int gpu_join__push(struct gpu_model *m, const struct gpu_host_item *c);
/* Returns the thread's outermost call that contains these times within slack ns; NULL: none was recorded. */
struct gpu_span *gpu_join__outermost(const struct gpu_model *m, u32 pid, u32 tid, u64 start, u64 end, u64 slack);
int gpu_join__take_driver(struct gpu_model *m, const struct gpu_driver_item *d);
bool gpu_join__has_driver(const struct gpu_model *m, u32 pid, u32 correlation);
/* Fills in the launch of the work; false: not joined. */
bool gpu_join__launch(struct gpu_model *m, const struct gpu_work_item *w, struct gpu_launch *out);
/* Returns the call that made the allocation or release, and its thread; NULL: none was recorded. */
const struct gpu_span *gpu_join__memory(const struct gpu_model *m, const struct gpu_allocation *a, u32 *tid);
void gpu_join__end(struct gpu_model *m);
void gpu_join__free(struct gpu_model *m);

/* gpu_order.c: returns whether the process's work is joined by order. */
bool gpu_order__is_used(const struct gpu_model *m, u32 pid);
/* Adds the work of a call, if no other call reports that work. */
int gpu_order__take_call(struct gpu_model *m, const struct gpu_host_item *c);
int gpu_order__take_work(struct gpu_model *m, const struct gpu_work_item *w);
/* Emits all waiting work without its launch, because too many items wait. */
int gpu_order__give_up(struct gpu_model *m);
int gpu_order__end(struct gpu_model *m);

/* gpu.c */
int gpu_model__emit_work(struct gpu_model *m, const struct gpu_work_item *i);

/* gpu_host.c */
const char *gpu_host__function(const struct gpu_model *m, u16 event, u16 probe);
/* Emits the call, and adds the work that is known from it alone to the queue of work. */
int gpu_host__emit(struct gpu_model *m, const struct gpu_host_item *c);

/* gpu_memory.c */
/* In a process without gpu_memory events, queues the allocation or release that the call makes. */
int gpu_memory__take_call(struct gpu_model *m, const struct gpu_host_item *c);
int gpu_memory__emit(struct gpu_model *m, struct gpu_memory_item *i);

/* gpu_call_names.c: "cuLaunchKernel"; NULL: not known here */
const char *gpu_call__function(u32 function);
/* Returns what the call requests; REQUEST_NONE: not known here. */
enum gpu_request gpu_call__request(u32 function);

/* gpu_names.c */
void gpu_names__free(struct gpu_model *m);

/* Returns whether [start, end) overlaps the selected time. */
static inline bool gpu_model__is_selected(const struct gpu_model *m, u64 start, u64 end)
{
	return (end > m->from || (end == start && end >= m->from)) && (!m->to || start < m->to);
}
