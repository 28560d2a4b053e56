/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPU memory of PyTorch's tensors: what each operator allocated and freed, what is allocated over time, and by which
 * operator and line of Python.
 *
 * As in torch.profiler, memory that aten::empty or a similar operator allocates is counted for that operator. A site
 * names the call around it, for which the memory was allocated.
 */
#pragma once

#include "model/torch_steps.h"

#define TORCH_MEMORY_SLOTS 1000 /* of the time line */
#define TORCH_MEMORY_LINES 64u /* processes with a time line, 8 KB each */
#define TORCH_GROWTH_MIN   4096 /* bytes a step that are worth a finding */

/* Of a process. Memory that was allocated before the selected time is in none of these figures. */
struct torch_memory_sum {
	u64 live, live_n; /* bytes and blocks that are allocated; after reading: at the end */
	u64 peak, peak_time; /* ns */
	u64 peaks; /* how often the peak rose */
	u64 allocations, bytes; /* bytes: of all allocations together */
	u64 releases;
	u64 unknown_releases; /* of blocks whose allocation was not recorded */
	u64 *slots; /* the most bytes in each slot of the time line; NULL: it has none */
	u32 slot; /* the last one that was written */
};

struct torch_memory_site_key {
	u32 pid;
	u32 name; /* for torch__name(); 0: no operator */
	u32 stack; /* of Python; 0: not known */
};

struct torch_memory_site {
	u64 allocations, bytes;
	u64 live, live_n; /* at the end */
	u64 peak, peak_n; /* at the process's peak */
	u64 peaks; /* of the process when this was changed last */
	u32 index; /* in sites */
};

/* What calls of one name allocated and freed themselves. */
struct torch_memory_operator {
	u64 allocations, releases;
	u64 allocated, freed; /* bytes */
};

struct torch_memory_sums {
	struct torch *torch; /* has the names */
	struct map sums; /* u32 pid -> struct torch_memory_sum */
	struct map sites; /* struct torch_memory_site_key -> struct torch_memory_site */
	struct map operators; /* u32 name -> struct torch_memory_operator; 0: in no operator */
	u64 first, slot_ns; /* of the time line */
	bool has_forgotten; /* blocks were taken for freed at a pause, or between several traces */
};

/*
 * What each step of a loop leaves allocated at the end of the trace. The first step and the last two are not counted.
 */
struct torch_growth {
	u32 site; /* index in sites */
	u32 steps; /* in which it allocated some of it */
	u64 bytes, blocks; /* of all steps */
};

struct torch_growths {
	struct torch_growth *list; /* the largest first */
	u32 n;
	u32 steps; /* that were counted */
	u64 bytes; /* of steady ones: in at least half of the steps */
};

/* Of an event torch_alloc: was memory freed? */
bool torch_memory__is_release(const struct view *v);
/* Reads the trace. 0 or negative errno; torch_memory__free in any case. */
int torch_memory__new(struct torch_memory_sums **out, const struct query *q);
void torch_memory__free(struct torch_memory_sums *m);
/* Finds nothing if blocks were forgotten. 0 or -ENOMEM; free out->list in any case. */
int torch_memory__growth(const struct torch_memory_sums *m, const struct torch_loop *l, struct torch_growths *out);
/* Does it grow by TORCH_GROWTH_MIN a step or more? Returns the site with the largest part then; NULL: it does not. */
const struct torch_growth *torch_growths__main(const struct torch_growths *g);
/*
 * Writes "memory grows by 2.00 MiB a step, over 8 steps; 2.00 MiB of that is from aten::clone". line: of the main site;
 * NULL: not known. Returns buf.
 */
char *torch_growths__text(const struct torch_growths *g, const struct torch_memory_sums *m, const char *line, char *buf,
			  size_t size);
