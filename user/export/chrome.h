/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of the exporter for chrome://tracing. */
#pragma once

#include "export/export.h"
#include "export/kineto_ids.h"
#include "export/lane.h"
#include "export/torch_blocks.h"
#include "export/torch_flows.h"
#include "model/gpu.h"
#include "model/meaning.h"
#include "model/order.h"
#include "util/map.h"

#define CHROME_EXACT (1ull << 53) /* larger integers are not exact, as JSON's numbers are doubles */

#define CHROME_FIRST_LANE (1u << 30) /* above all thread numbers, also those of merged traces */

/* Returns the number of a process or thread: its own or, if it reused a pid, an unused one. */
#define CHROME_FIRST_AGAIN (1u << 29)
static inline u32 chrome__number(u32 id)
{
	return id < TRACE_TASK_IDS ? id : id - TRACE_TASK_IDS + CHROME_FIRST_AGAIN;
}

#define GPUS_FIRST_INDEX 5000000u /* Kineto sorts GPUs behind processes, by number */

/* chrome_python.c: functions of Python, estimated from the stacks of calls */
struct chrome_python {
	struct map threads; /* struct thread_key -> struct python_thread */
	struct map modules; /* struct module_key -> struct module_number: nn.Modules that were called */
	struct map classes; /* class[MODULE_CLASS] -> u32: how many of them are of this class */
	struct interval *gaps; /* pauses, and times in which records were lost; by time, disjoint */
	u32 n_gaps;
	u32 open; /* rows of all threads that are not written yet */
	u64 calls, numbers; /* calls, and rows that were opened, so far */
};

struct chrome {
	struct order *order;
	const struct schema_event *event; /* kind of the last event */
	struct common_fields fields; /* fields of that kind */
	struct map tasks; /* struct task_key -> u8: tasks that were named already */
	struct map lanes; /* struct lane_key -> struct chrome_lane */
	struct torch_flows torch_flows; /* of chrome_torch.c */
	struct torch_blocks blocks; /* of chrome_torch.c */
	struct chrome_python python;
	u64 flows; /* from operators to backward nodes */
	u64 ahead; /* ns that are added to times */
	struct kineto_ids ids; /* of format kineto */
	struct map shapes; /* of chrome_kineto.c: tensors of calls that have not ended yet */
	u64 others; /* rows of format kineto that were numbered and are not among ids */
	bool is_kineto; /* only what torch.profiler has, too */
	bool any;
};

/* chrome.c: writes the separator of events; names a process and a thread at their first event (0 or -ENOMEM). */
void chrome__next_event(struct export *e);
void chrome__put_name(struct export *e, const char *what, u32 pid, u32 tid, const char *name);
int chrome__put_names(struct export *e, u32 pid, u32 tid);
/* Writes ns as us; put_time: of a moment on CLOCK_MONOTONIC. */
void chrome__put_us(FILE *out, u64 ns);
void chrome__put_time(struct export *e, u64 time);
/* Writes the member "dur" of a span, after a comma. */
void chrome__put_dur(struct export *e, u64 start, u64 end);

/* chrome.c, for format kineto: open makes e->data, rows and end are an exporter's; 0 or negative errno. */
int chrome__open(struct export *e);
int chrome__only_kineto(struct export *e, u64 ahead);
/* Does format kineto have the calls of this family? */
bool chrome__is_kineto_family(const struct export *e, u8 id);
int chrome__rows(struct export *e, const struct rows *rows);
int chrome__end(struct export *e);

/* chrome_lanes.c */
void chrome__init_lanes(struct chrome *c);
/*
 * Writes the number of the thread on which a span is drawn to *out. lane: the name of the one beside the thread that
 * has all such spans; NULL: the thread itself, or one named after their kind. Returns 0 or -ENOMEM.
 */
int chrome__place(struct export *e, u32 pid, u32 tid, const char *kind, const char *lane, const struct interval *span,
		  u32 *out);
void chrome__free_lanes(struct chrome *c);

/* chrome_torch.c */
void chrome_torch__init(struct chrome *c);
void chrome_torch__free(struct chrome *c);
/* Writes the arguments of an operator or backward node that torch.profiler's have. */
void chrome_torch__put_args(struct export *e, const struct view *v);
/*
 * Writes a flow to a backward node from the operator's call that made it. Call it for each event that was drawn; 0 or
 * -ENOMEM.
 */
int chrome_torch__put_flow(struct export *e, const struct view *v, const struct drawn_place *at);

/*
 * Writes an event torch_alloc as torch.profiler's profile_memory does; nothing for a block of unknown size.
 * Returns 0 or negative errno.
 */
int chrome_torch__put_memory(struct export *e, const struct view *v);

/* Writes training steps that no event marks, as ranges ProfilerStep#N. 0 or negative errno. */
int chrome_torch__put_steps(struct export *e);

/* chrome_python.c */
void chrome_python__init(struct chrome *c);
void chrome_python__free(struct chrome *c);
/* Reads when the recording paused or lost records. Call it before all spans. 0 or negative errno */
int chrome_python__read_gaps(struct export *e);
/* Adds a span of a thread, in order of the ends, before it is written. stack 0: not known. 0 or -ENOMEM */
int chrome_python__add(struct export *e, u32 pid, u32 tid, const struct interval *time, u32 stack);
/* Adds a call of an nn.Module (event torch_module), in the same order. 0 or -ENOMEM */
int chrome_python__add_module(struct export *e, const struct view *v);
/* Writes all rows that are open. */
void chrome_python__close(struct export *e);

/* A row of the host in format kineto */
struct kineto_row {
	u32 tid;
	u64 start, end;
	bool is_cuda; /* a call of CUDA or the driver */
	const struct kineto_launch *launch; /* NULL: it launched no work that was recorded */
};

/* chrome_kineto.c */
void chrome_kineto__init(struct chrome *c);
void chrome_kineto__free(struct chrome *c);
/* Stores an event torch_shape until its call ends. 0 or -ENOMEM */
int chrome_kineto__add_shape(struct export *e, const struct view *v);
/* Returns the index ("Ev Idx") of a row that is no operator or range. */
u64 chrome_kineto__next_index(struct chrome *c);
/* Writes the first arguments of an operator or range; number 0: it is not among ids. */
void chrome_kineto__put_ids(struct export *e, u32 number);
/* Writes the member "args" and ends the row. */
void chrome_kineto__put_args(struct export *e, const struct view *v, const struct kineto_row *row);
/* Writes the name of a call of CUDA or the driver to buf, and returns it. */
const char *chrome_kineto__title(const struct kineto_row *row, const char *title, char *buf, size_t size);
/* Write what torch.profiler's files have beside the names of processes and threads. */
void chrome_kineto__put_process(struct export *e, u32 pid);
void chrome_kineto__put_thread(struct export *e, u32 pid, u32 tid);
void chrome_kineto__put_stream(struct export *e, u32 gpu, u32 tid);

/* chrome_annotations.c */
struct chrome_annotations {
	struct map list; /* struct key -> struct annotation */
};

void chrome_annotations__init(struct chrome_annotations *a);
void chrome_annotations__free(struct chrome_annotations *a);
/* Adds work that ended at `end` to the ranges in which it was launched. at: where it is drawn. 0 or -ENOMEM */
int chrome_annotations__add(struct chrome_annotations *a, const struct kineto_ids *ids, const struct gpu_launch *l,
			    const struct drawn_place *at, u64 end);
/* Writes their rows. 0 or negative errno */
int chrome_annotations__put(struct export *e, struct chrome_annotations *a);

/* chrome_gpu.c: writes GPU work, and launches that only CUPTI recorded; reads the trace once more. */
int chrome__put_gpu_work(struct export *e);
/* chrome_gpu_metrics.c: writes what NVML reported as counters. 0 or negative errno */
int chrome__put_gpu_metrics(struct export *e);
