/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes of the summary: their table, and what of their time no event explains. */
#pragma once

#include "model/cuda_calls.h"
#include "report/python/gil.h"
#include "report/os/sched.h"

#define RUNTIMES_LEN 160

struct summary_process {
	u64 events;
	u64 families; /* bit of each family id below 64 that has events */
	u64 cuda_calls, cuda_ns, gil_waits, gil_ns, cpu_ns;
	double gil_busy; /* ns in which a thread waited for the GIL */
	char runtimes[RUNTIMES_LEN]; /* file names of what it mapped, comma-separated */
};

/* Pids are reused: processes with one pid are distinguished by time. */
struct summary_key {
	const struct task *task; /* NULL: not known to names */
	u64 pid;
};

struct summary_processes {
	const struct query *args;
	struct map processes; /* struct summary_key -> struct summary_process */
	/* Caches recent pids: events of a process follow each other, and there may be millions. */
	struct {
		u32 pid;
		struct summary_process *process;
	} recent[64];
	struct map kinds; /* keys: u16 id of each kind that occurs */
};

/* Reads all events. 0 or negative errno; summary_processes__free in any case. */
int summary_processes__read(struct summary_processes *s, const struct query *args);
void summary_processes__free(struct summary_processes *s);
/* Adds what processes spent in CUDA calls, waiting for the GIL and on CPUs. 0 or -ENOMEM. */
int summary_processes__add(struct summary_processes *s, const struct cuda_calls *cuda, const struct gil_report *gil,
			   const struct sched_report *sched);
/* Adds the table. Returns how many processes were left out; if that would be all, none is. */
u32 summary_processes__table(struct summary_processes *s, struct report_output *out, u32 *shown);
/* Adds a finding on options that would have shown more. 0 or -ENOMEM. */
int summary_processes__add_unexplained(const struct summary_processes *s, struct report_output *out);
/* Adds the finding on how many processes were traced. It is the last one, as it does not explain slowness. */
void summary_processes__add_count(const struct summary_processes *s, struct report_output *out, u32 shown,
				  u32 uninteresting);
