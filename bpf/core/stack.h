/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames and code on their way from BPF to the loader. BPF numbers frames and code
 * objects when it first sees them and sends what it read of them once, as raw records;
 * the loader turns those into meta_frame and meta_code (user/record/stacks.c): it has the
 * line tables and the symbols. Raw records are no events: they are not in the trace.
 */
#ifndef SONDE_STACK_H
#define SONDE_STACK_H

#include "event.h"

/* Ids of records that the loader keeps to itself; families end before. */
#define RAW_FIRST 0xff00

enum raw_record {
	RAW_FRAME = RAW_FIRST,
	RAW_CODE,
};

/* A family's own raw record, for the `event` of its host code. */
#define RAW_FAMILIES   0xff40
#define RAW_OF(family) (RAW_FAMILIES + (family))

/* Frames of a stack that are walked; a deeper one begins with a frame of FRAME_CUT. */
#define STACK_FRAMES	   256
/* Where it would be felt: in sched_waking. */
#define STACK_FRAMES_SHORT 64

#endif
