/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Synthetic traces of GPU work, written with the structs of BPF, and the GPU model of them. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/embedded.h"
#include "model/gpu.h"
#include "probes/cuda/cuda.h"
#include "probes/cudadrv/cudadrv.h"
#include "probes/gpu/gpu.h"
#include "probes/proc/proc.h"
#include "trace/writer.h"

struct made {
	struct embedded e;
	struct trace_writer *w;
	char path[64];
	int fd;
	struct trace *trace;
	struct names *names;
	struct gpu_model *model;
};

static inline bool made__begin(struct made *g)
{
	static const struct trace_head head = { .hostname = "made-up", .cpus = 4 };
	char err[256] = "";

	memset(g, 0, sizeof(*g));
	g->fd = memfd_create("gpu", MFD_CLOEXEC);
	snprintf(g->path, sizeof(g->path), "/proc/self/fd/%d", g->fd);
	if (embedded__open(&g->e, err, sizeof(err)) || trace_writer__create(&g->w, g->fd, g->e.schema, &head)) {
		printf("# %s\n", err);
		return false;
	}
	return true;
}

/* Appends an event; its struct has everything except the id */
#define ADD(g, type, ...)                                                \
	do {                                                             \
		struct type e_ = { __VA_ARGS__ };                        \
                                                                         \
		((struct event *)&e_)->id = ID_##type;                   \
		if (trace_writer__append((g)->w, &e_, sizeof(e_)))       \
			printf("# %s does not fit its schema\n", #type); \
	} while (0)

#define EVENT_AT(p, t, at)                           \
	{                                            \
		.time = (at), .pid = (p), .tid = (t) \
	}
#define SPAN_AT(p, t, from, to)                              \
	{                                                    \
		.event = EVENT_AT(p, t, to), .start = (from) \
	}
#define CALL_AT(p, t, from, to)                 \
	{                                       \
		.span = SPAN_AT(p, t, from, to) \
	}

static inline void made__name(struct made *g, u32 pid, u64 hash, const char *text)
{
	char room[4096] = "";
	struct gpu_name *n = (void *)room;
	size_t at = offsetof(struct gpu_name, text), len = strlen(text);

	n->event = (struct event)EVENT_AT(pid, 0, 1000);
	n->event.id = ID_gpu_name;
	n->kernel.name = hash;
	memcpy(room + at, text, len);
	trace_writer__append(g->w, room, at + len);
}

static inline void made__function(struct made *g, u32 pid, u64 function, u64 kernel, const char *text)
{
	char room[4096] = "";
	struct cudadrv_function *f = (void *)room;
	size_t at = offsetof(struct cudadrv_function, name), len = strlen(text);

	f->call.span.event = (struct event)EVENT_AT(pid, pid, 1000);
	f->call.span.event.id = ID_cudadrv_function;
	f->call.span.start = 900;
	f->function = function;
	f->kernel = kernel;
	memcpy(room + at, text, len);
	trace_writer__append(g->w, room, at + len);
}

static inline bool made__open(struct made *g)
{
	char err[256] = "";

	if (trace_writer__finish(g->w) || trace__open(&g->trace, g->path, err, sizeof(err)) ||
	    names__create(&g->names, trace__schema(g->trace)) || names__load(g->names, g->trace) ||
	    gpu_model__new(&g->model, g->trace, g->names)) {
		printf("# %s\n", err);
		return false;
	}
	return true;
}

static inline void made__end(struct made *g)
{
	gpu_model__free(g->model);
	names__free(g->names);
	trace__close(g->trace);
	trace_writer__free(g->w);
	embedded__close(&g->e);
	close(g->fd);
}
