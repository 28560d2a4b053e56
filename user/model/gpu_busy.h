/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When devices had work of a process and when they had none: sums by device and stream, and the gaps, each with
 * the work that ended it and its launch. Device numbers are per process, so devices are keyed by process and
 * number.
 */
#pragma once

#include "model/gpu.h"
#include "model/query.h"
#include "util/map.h"

/* Gaps that are stored one by one. Beyond that the shortest are only summed up. */
#define GPU_GAPS_MAX (2u << 20)

struct gpu_device_key {
	u32 pid, device;
};

struct gpu_stream_key {
	struct gpu_device_key device;
	u32 context, stream;
};

struct gpu_kernel_key {
	struct gpu_device_key device;
	const char *name; /* mangled */
};

struct gpu_sum {
	u64 works, ns;
};

struct gpu_stream_sum {
	u64 works, busy_ns;
	u64 until; /* the last end so far */
	u64 launched; /* when its last work's launch began, 0: not known */
};

struct gpu_device_sum {
	u32 index; /* in devices */
	u64 first, last; /* start of the first work, end of the last one, in the selected time */
	u64 busy_ns; /* a kernel, copy or set ran */
	u64 kernel_ns, copy_ns, both_ns; /* at least one kernel; one copy or set; one of each */
	u64 depth_ns; /* the sum of all kernels' times */
	u32 deepest;
	u64 kernels, copies, sets, graphs, bytes;
	u64 until; /* the last end so far */
	u32 last_tid; /* the thread that launched the last work; 0: not known */
	u64 gaps, short_gaps, short_ns; /* short gaps are counted but not stored */
	u64 longest;
};

struct gpu_gap {
	u64 from, to;
	u32 device; /* index in devices */
	u32 context, stream;
	u32 tid; /* the thread that launched the work that ended it; 0: not known */
	u64 launch_start, launch_end; /* 0: not known */
	u64 launch_before; /* when the launch of the previous work in that stream began; 0: not known */
	const char *call; /* the function that launched it; NULL: not known */
	const char *name; /* the work that ended it: a kernel, mangled, or an operation */
	bool is_kernel;
	u32 stack; /* Python stack of the launch; 0: not known */
	bool tail; /* the time from the last work to the trace's end, which is not part of the device's time */
	u32 rank; /* rank by length from 1, for the longest, which get details; else 0 */
};

/* Work of a process without device records, by the host calls that requested it */
struct gpu_host_work {
	u64 kernels, copies, sets, graphs;
	u64 ns; /* in these calls */
};

struct gpu_busy {
	const struct query *args;
	struct gpu_model *model; /* owns the names */
	struct gpu_coverage coverage;
	struct map devices; /* struct gpu_device_key -> struct gpu_device_sum */
	struct map streams; /* struct gpu_stream_key -> struct gpu_stream_sum */
	struct map kernels; /* struct gpu_kernel_key -> struct gpu_sum */
	struct map host_work; /* u32 pid -> struct gpu_host_work */
	struct gpu_gap *gaps; /* by start, once all is read */
	u32 n_gaps;
	u64 shortest; /* ns: shorter gaps are only summed up */
};

/* Called for each interval in which a device (index in devices) had work, in order for each device. */
typedef int (*gpu_busy_fn)(u32 device, u64 from, u64 to, void *arg);

/* fn may be NULL. 0 or negative errno; gpu_busy__free in any case. */
int gpu_busy__read(struct gpu_busy *b, const struct query *args, gpu_busy_fn fn, void *arg);
void gpu_busy__free(struct gpu_busy *b);
static inline const struct gpu_device_key *gpu_busy__key(const struct gpu_busy *b, u32 device)
{
	return map__key(&b->devices, device);
}
static inline struct gpu_device_sum *gpu_busy__sum(const struct gpu_busy *b, u32 device)
{
	return map__value(&b->devices, device);
}
static inline u64 gpu_device__time(const struct gpu_device_sum *d)
{
	return d->last - d->first;
}
static inline u64 gpu_device__idle(const struct gpu_device_sum *d)
{
	return gpu_device__time(d) - d->busy_ns;
}
