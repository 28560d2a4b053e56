/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GPU work, joined with the host calls that launched it.
 *
 * Two views are merged. The shim's (family gpu) has the device's times and a correlation id for each work item; event
 * gpu_call, CUDA's launch function as CUPTI saw it, has the same id, a thread and host times. The uprobes' view
 * (families cuda and cudadrv) has arguments, what the call returned, the Python stack and whether the thread had the
 * GIL. A gpu_call lies within the outermost call of its thread that was recorded, up to the clocks' error.
 *
 * Without a shim there are only the calls. They are emitted as work too, with the host's times and marked so
 * (host_time): reports then show when the host launched work, not when the device ran it.
 */
#pragma once

#include "model/names.h"
#include "trace/reader.h"

enum gpu_kind {
	GPU_KERNEL,
	GPU_COPY,
	GPU_SET,
	GPU_GRAPH, /* a graph as a whole: its nodes are not recorded */
};

/* The host call that launched the work: the outermost one, so the runtime's call if that called the driver. */
struct gpu_launch {
	/* number of the launch from 1, by its first emitted work; all nodes of a graph launch share it */
	u64 number;
	u32 pid, tid; /* tid 0: not known */
	u64 start, end; /* ns, CLOCK_MONOTONIC */
	const char *function; /* "cudaLaunchKernel", "cuLaunchKernelEx"; NULL: not known */
	const char *cupti_function; /* the same as CUPTI names it, also if a uprobe saw an inner call; NULL: not known */
	bool probed; /* recorded by uprobes; else only by CUPTI, without a stack */
	u32 stack; /* Python stack at the call, see model/stacks.h; 0: not known */
	u32 gil; /* enum gil_held of bpf/core/gil_held.h */
	s64 ret; /* what it returned, if probed */
	u64 stream; /* handle, if probed */
};

/* Work on a device: a kernel, copy, set or graph. */
struct gpu_work {
	enum gpu_kind kind;
	bool host_time; /* no shim: start and end are the call's */
	bool open; /* had not ended when the trace did */
	u32 pid, device, context, stream, correlation;
	u32 graph; /* 0: not part of a graph */
	u64 graph_node; /* 0: none */
	u64 start, end; /* ns, CLOCK_MONOTONIC */
	/* ns from the launch call's end to its start, 0 if it began within the call: Nsight's queue time */
	u64 queued;
	/* end of the previous work in the stream if after the launch: the work could not start before; 0: none */
	u64 stream_free;
	const char *name; /* a kernel's mangled name; NULL: not known, or no kernel. Lives as long as the model */
	u32 grid[3], block[3];
	u32 registers, static_shared, dynamic_shared; /* of a thread; bytes of a block */
	u32 local_memory; /* bytes of a thread */
	bool cooperative; /* launched so that its blocks can wait for each other */
	u64 bytes; /* of copies and sets */
	u32 value; /* of sets */
	u32 copy_kind; /* enum gpu_copy_kind of bpf/core/shim.h */
	u32 from_memory, to_memory; /* enum gpu_memory_kind of bpf/core/shim.h; a set has to_memory only */
	bool asynchronous;
	const struct gpu_launch *launch; /* NULL: not joined; lives until the callback returns */
};

/* A call of the runtime or the driver; nested: made within another emitted call. */
struct gpu_host_call {
	u32 pid, tid;
	u64 start, end;
	const char *function;
	const struct schema_event *event; /* cuda_sync, cudadrv_launch.. */
	s64 ret;
	bool nested, open;
	bool untimed; /* open, or its duration is not known */
	u32 stack, gil;
};

/* Memory that was allocated or released. */
struct gpu_allocation {
	u32 pid, tid; /* tid 0: not known */
	u64 time, address, bytes; /* bytes of a release: those of its allocation, 0: not recorded */
	u32 device; /* GPU_NO_DEVICE: only the call is known, without a device */
	u32 memory; /* enum gpu_memory_kind */
	bool release, asynchronous;
	bool host_time; /* seen by uprobes alone */
	u32 stack;
	u64 pool, pool_size, pool_used;
};

#define GPU_NO_DEVICE 0xffffffffu

/* Each function may be NULL and returns 0 or negative errno, which ends the reading. */
struct gpu_listener {
	/* Called nearly in order of the work's end, and exactly in order for the work of one stream. */
	int (*work)(const struct gpu_work *w, void *arg);
	int (*call)(const struct gpu_host_call *c, void *arg);
	int (*allocation)(const struct gpu_allocation *a, void *arg);
};

struct gpu_device_facts {
	u32 pid, device;
	const char *model; /* "NVIDIA H100 80GB HBM3"; "" if not known */
	u64 memory, bandwidth; /* bytes; kB/s */
	u32 multiprocessors, clock_khz, major, minor;
};

/* What the figures cover and leave out; outputs state it with them. */
struct gpu_coverage {
	u64 kernels, copies, sets, graphs;
	u64 joined, unjoined; /* work with and without a launch */
	u64 unprobed; /* joined by CUPTI's records alone, so without a stack */
	u64 host_time; /* work without device times */
	u64 open, open_calls; /* work, calls that had not ended when the trace did */
	/*
	 * launches of kernels and graphs without a device record: captured into a graph, still to run at the
	 * trace's end, or lost
	 */
	u64 unseen;
	u64 unwatched; /* calls that launched work in a process while its shim was off */
	u64 allocations;
	u64 dropped, dropped_bytes; /* gpu_dropped */
	u64 clock_error; /* ns, the largest error of the shims' clocks */
};

/* Launches of a process after the last one whose work has a device record, which CUPTI makes when work has ended */
struct gpu_unended {
	u64 launches;
	u64 start, end; /* of the first one's call */
	const char *function; /* that it called */
};

struct gpu_model;

/* names must outlive it. 0 or negative errno. */
int gpu_model__new(struct gpu_model **out, struct trace *t, const struct names *names);
void gpu_model__free(struct gpu_model *m);
/*
 * Reads [from, to) (to 0: no limit) of some processes (NULL: of all) and calls the listener for work and calls that
 * overlap it. Memory is bounded except for live allocations and names. May be called again. coverage may be NULL.
 */
int gpu_model__read(struct gpu_model *m, u64 from, u64 to, const struct trace_ids *pids,
		    const struct gpu_listener *listener, void *arg, struct gpu_coverage *coverage);
/* Call after a read. NULL: the shim did not record it. */
const struct gpu_device_facts *gpu_model__device(const struct gpu_model *m, u32 pid, u32 device);
/* Call after a read. Of a process that ended, the records may have been lost. NULL: there are no such launches. */
const struct gpu_unended *gpu_model__unended(const struct gpu_model *m, u32 pid);
/* A kernel's demangled name: "void gemm<128>(float*, float*, float*, int)"; the mangled one if it is not a C++ name. */
const char *gpu_model__demangled(struct gpu_model *m, const char *mangled);
/* The function's own name, without arguments, templates, return type and namespaces: "gemm". */
const char *gpu_model__short_name(struct gpu_model *m, const char *mangled);
/* "[CUDA memcpy Host-to-Device]", "[CUDA memset]", the names that Nsight uses */
const char *gpu_work__operation(const struct gpu_work *w);
