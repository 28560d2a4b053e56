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
#define STACK_FRAMES 256
/* In sched_waking, where a walk delays the wake-up of another thread. */
#define STACK_FRAMES_SHORT 64

struct raw_frame {
	struct event event; /* pid: the process that it belongs to */
	u64 offset; /* Python: of the instruction in the bytecode, bytes; native: its address in the process */
	u32 frame; /* its id */
	u32 caller; /* id of the frame that called it, 0: it is the outermost */
	u32 code; /* Python: id of the code, 0: not known; native: the process (tgid) */
	u32 kind; /* enum frame_kind */
};

/* What of a code object a raw_code holds. */
enum raw_code_part {
	RAW_CODE_NAME,
	RAW_CODE_FILE,
	RAW_CODE_LINES, /* co_linetable, before 3.10 co_lnotab */
	RAW_CODE_PARTS
};

#define RAW_CODE_CHUNK 1024

/* A piece of a code object; the pieces of one part come in order. */
struct raw_code {
	struct event event;
	u32 code; /* id */
	u32 line; /* co_firstlineno */
	u32 total; /* bytes of this part in all */
	u32 at; /* where in it data begins */
	u32 size; /* bytes of data */
	u16 version; /* 0x030b: CPython 3.11 */
	u8 part; /* enum raw_code_part */
	u8 width; /* bytes a character, of a text: 1 (Latin-1), 2, 4; 0: could not be read */
	u8 data[RAW_CODE_CHUNK]; /* only as much as there is comes with the record */
};

#endif
