// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report cuda-trace: each kernel, copy, set and graph in order of start, as nsys's cuda_gpu_trace. */
#include <stdio.h>

#include "output/text.h"
#include "report/gpu/cuda_work.h"
#include "util/array.h"

struct trace_report {
	struct cuda_work work;
	struct table *table;
	u64 first, last, longest;
	u64 n;
};

static const struct column columns[] = {
	{ "start_ns", "Start (s)", VALUE_U64, SHOW_SECONDS },
	{ "duration_ns", "Duration", VALUE_U64, SHOW_NS },
	{ "correlation", "CorrId", VALUE_U64, SHOW_PLAIN },
	{ "grid_x", "GrdX", VALUE_U64, SHOW_PLAIN },
	{ "grid_y", "GrdY", VALUE_U64, SHOW_PLAIN },
	{ "grid_z", "GrdZ", VALUE_U64, SHOW_PLAIN },
	{ "block_x", "BlkX", VALUE_U64, SHOW_PLAIN },
	{ "block_y", "BlkY", VALUE_U64, SHOW_PLAIN },
	{ "block_z", "BlkZ", VALUE_U64, SHOW_PLAIN },
	{ "registers", "Reg/Trd", VALUE_U64, SHOW_PLAIN },
	{ "static_shared_bytes", "StcSMem", VALUE_U64, SHOW_BYTES },
	{ "dynamic_shared_bytes", "DymSMem", VALUE_U64, SHOW_BYTES },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "bytes_per_s", "Throughput", VALUE_DOUBLE, SHOW_BYTES },
	{ "from_memory", "SrcMemKd", VALUE_TEXT, SHOW_PLAIN },
	{ "to_memory", "DstMemKd", VALUE_TEXT, SHOW_PLAIN },
	{ "device", "Device", VALUE_TEXT, SHOW_PLAIN },
	{ "context", "Ctx", VALUE_U64, SHOW_PLAIN },
	{ "green_context", "GreenCtx", VALUE_U64, SHOW_NEVER },
	{ "stream", "Strm", VALUE_U64, SHOW_PLAIN },
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "pid", "PID", VALUE_U64, SHOW_NEVER },
	{ "tid", "TID", VALUE_U64, SHOW_NEVER },
	{ "launch_start_ns", "Launched", VALUE_U64, SHOW_NEVER },
	{ "launch_ns", "Launch", VALUE_U64, SHOW_NEVER },
	{ "api", "API Name", VALUE_TEXT, SHOW_NEVER },
	{ "queued_ns", "Queued", VALUE_U64, SHOW_NEVER },
	{ "graph", "Graph", VALUE_U64, SHOW_NEVER },
	{ "graph_node", "Node", VALUE_U64, SHOW_NEVER },
	{ "only_by_calls", "Known from calls alone", VALUE_U64, SHOW_NEVER },
	{ "open", "Not ended", VALUE_U64, SHOW_NEVER },
};

static const char *memory_name(u32 kind)
{
	static const char *const names[] = { NULL,    "Pageable", "Pinned",	   "Device",
					     "Array", "Managed",  "Device Static", "Managed Static" };

	return kind < ARRAY_LEN(names) ? names[kind] : NULL;
}

static const char *device_name(const struct trace_report *r, const struct gpu_work *w, char *buf, size_t size)
{
	const struct gpu_device_facts *d = gpu_model__device(r->work.model, w->pid, w->device);

	if (w->device == GPU_NO_DEVICE)
		return NULL;
	if (d && *d->model)
		snprintf(buf, size, "%s (%u)", d->model, w->device);
	else
		snprintf(buf, size, "(%u)", w->device);
	return buf;
}

#define IF(condition, value) ((condition) ? (value) : V_NONE)

static int on_work(const struct gpu_work *w, void *arg)
{
	struct trace_report *r = arg;
	bool kernel = w->kind == GPU_KERNEL, moves = w->kind == GPU_COPY || w->kind == GPU_SET;
	u64 ns = w->end - w->start, origin = r->work.args->start;
	const struct gpu_launch *l = w->launch;
	bool timed = !w->host_time, has_rate = moves && timed && !w->open && ns && w->bytes;
	char device[96];

	table__add(r->table, V_U64(w->start > origin ? w->start - origin : 0), V_U64(ns),
		   IF(timed, V_U64(w->correlation)), IF(kernel, V_U64(w->grid[0])), IF(kernel, V_U64(w->grid[1])),
		   IF(kernel, V_U64(w->grid[2])), IF(kernel, V_U64(w->block[0])), IF(kernel, V_U64(w->block[1])),
		   IF(kernel, V_U64(w->block[2])), IF(kernel && timed, V_U64(w->registers)),
		   IF(kernel && timed, V_U64(w->static_shared)), IF(kernel, V_U64(w->dynamic_shared)),
		   IF(moves, V_U64(w->bytes)), IF(has_rate, V_DBL((double)w->bytes * 1e9 / (double)ns)),
		   V_TEXT(memory_name(w->from_memory)), V_TEXT(memory_name(w->to_memory)),
		   V_TEXT(device_name(r, w, device, sizeof(device))), IF(timed, V_U64(w->context)), V_NONE,
		   IF(timed, V_U64(w->stream)),
		   V_TEXT(kernel ? cuda_work__name(&r->work, w->name) : gpu_work__operation(w)), V_U64(w->pid),
		   IF(l && l->tid, V_U64(l->tid)), l ? V_U64(l->start > origin ? l->start - origin : 0) : V_NONE,
		   l ? V_U64(l->end - l->start) : V_NONE, V_TEXT(l ? l->function : NULL),
		   IF(timed && l, V_U64(w->queued)), IF(w->graph, V_U64(w->graph)),
		   IF(w->graph_node, V_U64(w->graph_node)), V_U64(w->host_time), V_U64(w->open));
	r->n++;
	r->first = r->n == 1 || w->start < r->first ? w->start : r->first;
	r->last = w->end > r->last ? w->end : r->last;
	return 0;
}

static int run(const struct query *args, struct report_output *out)
{
	struct trace_report r = { .table = REPORT_TABLE(out, "trace", "What the devices did, by start", columns) };
	int err;

	r.table->limit = 30;
	r.table->details =
		"context from_memory to_memory bytes_per_s correlation static_shared_bytes dynamic_shared_bytes";
	err = cuda_work__read(&r.work, args, on_work, &r);
	if (!err) {
		table__sort(r.table, "+start_ns");
		if (r.n)
			report_output__finding(out, "%s kernels, copies, sets and graphs in %s.", TEXT_COUNT(r.n),
					       TEXT_NS(r.last - r.first));
		cuda_work__add_notes(&r.work, out, r.n ? NULL : "No GPU work was recorded");
	}
	cuda_work__free(&r.work);
	return err;
}

REPORT(cuda_trace) = {
	.name = "cuda-trace",
	.doc = "every kernel, copy, set and graph in order of their starts",
	.kinds = "gpu_kernel,gpu_memcpy,gpu_memset,gpu_graph",
	.run = run,
};
