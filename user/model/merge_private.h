/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by merge.c, which writes the merged trace, and merge_schema.c, which joins the schemas of the inputs. */
#pragma once

#include "model/merge.h"
#include "model/timebase.h"
#include "util/map.h"

struct merge_input {
	struct trace *trace;
	const char *file;
	u32 host; /* number of the machine; 0: that of the first trace */
	u32 first_cpu; /* is added to the numbers of CPUs */
	bool same_clock; /* its clock is that of the first trace */
	struct timebase base;
	u16 *probes; /* the merged trace's number of each probe; [0x10000] */
	u16 objects; /* is added to the numbers of objects */
	struct map strings; /* u32 -> u32 */
	struct map frames, codes; /* ids of units `stack` and `code`: u32 -> u32 */
};

struct merge {
	struct merge_input *inputs;
	u32 n;
	struct schema schema; /* its strings belong to the inputs' schemas */
	struct trace_writer *writer;
	struct timebase *base; /* of the first input */
	u32 probes; /* numbered so far */
	u16 objects;
	u32 frames, codes; /* numbered so far */
	const struct merge_part *part; /* of merge__part; NULL: all of the traces is written */
	u8 *record;
	char *err;
	size_t len;
	/* The part that is being read: */
	struct merge_input *input;
	u64 from, to; /* rows that end in [from, to), on the input's clock */
};

/* Writes "FILE: WHAT" as the reason why the traces can't be merged. Returns code. */
int merge__fail(struct merge *m, int code, const char *file, const char *what);
/* Makes the schema of the merged trace from those of the inputs. 0 or negative errno. */
int merge__join_schemas(struct merge *m);
