/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Within the exporter of chrome://tracing's JSON. */
#ifndef SONDE_EXPORT_CHROME_H
#define SONDE_EXPORT_CHROME_H

#include "export/export.h"
#include "util/map.h"

#define CHROME_EXACT (1ull << 53) /* JSON's numbers are doubles */

struct chrome {
	struct map tasks; /* struct task_key -> u8, those that have a name by now */
	bool any;
};

/* chrome.c: puts what separates events; names a process and a thread when they are first seen (0 or -ENOMEM). */
void chrome__next_event(struct export *e);
void chrome__put_name(struct export *e, const char *what, u32 pid, u32 tid, const char *name);
int chrome__put_names(struct export *e, u32 pid, u32 tid);
void chrome__put_us(FILE *out, u64 ns);

/* chrome_gpu.c: GPUs' work and the launches that CUPTI alone saw; reads the trace once more. */
int chrome__put_gpu_work(struct export *e);

#endif
