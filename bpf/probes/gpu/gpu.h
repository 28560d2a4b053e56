/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work of GPUs as the shim in the target reads it from CUPTI (docs/gpu.md). Times are the device's, converted to
 * CLOCK_MONOTONIC; event gpu_clock has the error.
 */
#pragma once

#include "core/shim.h"

FAMILY(gpu, 0x0d, FAMILY_ON_REQUEST, "GPU work as CUPTI reports it to a shim in the process");

struct gpu_kernel {
	struct span span;
	struct shim_kernel kernel;
} EVENT(gpu_kernel, 0x0d01, "a kernel on a device; a device's events have no thread: tid is 0");

struct gpu_memcpy {
	struct span span;
	struct shim_memcpy copy;
} EVENT(gpu_memcpy, 0x0d02, "a copy on a device");

struct gpu_memset {
	struct span span;
	struct shim_memset set;
} EVENT(gpu_memset, 0x0d03, "a memset on a device");

struct gpu_sync {
	struct span span;
	struct shim_sync sync;
} EVENT(gpu_sync, 0x0d04, "a wait for a device, or of a stream for an event");

struct gpu_graph {
	struct span span;
	struct shim_graph graph;
} EVENT(gpu_graph, 0x0d05, "a launched graph as a whole");

struct gpu_memory {
	struct event event;
	struct shim_allocation allocation;
} EVENT(gpu_memory, 0x0d06, "memory was allocated or released");

struct gpu_pool {
	struct event event;
	struct shim_pool pool;
} EVENT(gpu_pool, 0x0d07, "a memory pool was created, destroyed or trimmed");

struct gpu_call {
	struct span span;
	struct shim_call call;
} EVENT(gpu_call, 0x0d08,
	"a launch function of libcuda or libcudart: its correlation id relates device work to the thread");

struct gpu_device {
	struct event event;
	struct shim_device device;
} EVENT(gpu_device, 0x0d09, "a device that the process can use");

struct gpu_context {
	struct event event;
	struct shim_context context;
} EVENT(gpu_context, 0x0d0a, "a context on a device");

struct gpu_stream {
	struct event event;
	struct shim_stream stream;
} EVENT(gpu_stream, 0x0d0b, "a stream of a context");

struct gpu_name {
	struct event event;
	struct shim_name kernel;
	char text[];
} EVENT(gpu_name, 0x0d0c, "the mangled name of a kernel; recorded once per recording and process");

struct gpu_clock {
	struct event event;
	struct shim_clock clock;
} EVENT(gpu_clock, 0x0d0d, "one moment on the device's clock and on CLOCK_MONOTONIC");

struct gpu_dropped {
	struct event event;
	struct shim_dropped dropped;
} EVENT(gpu_dropped, 0x0d0e, "what the shim could not report");

struct gpu_shim {
	struct event event;
	struct shim_state shim;
	char text[];
} EVENT(gpu_shim, 0x0d0f, "the shim started, stopped, or can't record");
