/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Within the exporter of chrome://tracing's JSON. */
#ifndef SONDE_EXPORT_CHROME_H
#define SONDE_EXPORT_CHROME_H

#include "export/export.h"
#include "export/lane.h"
#include "model/order.h"
#include "util/map.h"

#define CHROME_EXACT (1ull << 53) /* JSON's numbers are doubles */

#define CHROME_FIRST_LANE (1u << 30) /* above all thread numbers, those of merged traces too */

/* The number of a process or thread: its own, or for a process that reused a pid, an unused one. */
#define CHROME_FIRST_AGAIN (1u << 29)
static inline u32 chrome__number(u32 id)
{
	return id < TRACE_TASK_IDS ? id : id - TRACE_TASK_IDS + CHROME_FIRST_AGAIN;
}

struct chrome {
	struct order *order;
	const struct schema_event *event; /* of the last one */
	struct common_fields fields; /* of its kind */
	struct map tasks; /* struct task_key -> u8, those that have a name by now */
	struct map lanes; /* struct lane_key -> struct chrome_lane */
	bool any;
};

/* chrome.c: puts what separates events; names a process and a thread when they are first seen (0 or -ENOMEM). */
void chrome__next_event(struct export *e);
void chrome__put_name(struct export *e, const char *what, u32 pid, u32 tid, const char *name);
int chrome__put_names(struct export *e, u32 pid, u32 tid);
void chrome__put_us(FILE *out, u64 ns);

/* chrome_lanes.c */
void chrome__init_lanes(struct chrome *c);
/* The number of the thread that a span of a thread is drawn on. 0 or -ENOMEM. */
int chrome__place(struct export *e, u32 pid, u32 tid, const char *kind, const struct interval *span, u32 *out);
void chrome__free_lanes(struct chrome *c);

/* chrome_gpu.c: GPUs' work and the launches that CUPTI alone saw; reads the trace once more. */
int chrome__put_gpu_work(struct export *e);

#endif
