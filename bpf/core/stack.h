/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames and code objects on their way from BPF to the worker. BPF numbers frames and code objects at their first
 * occurrence and sends what it read of them once, as raw records. The worker, which has line tables and symbols, turns
 * these into meta_frame and meta_code (user/record/stacks/stacks.c). Raw records are not events and are not in the
 * trace.
 */
#pragma once

#include "event.h"

/* Ids of records that only the worker reads; ids of families end below. */
#define RAW_FIRST 0xff00

enum raw_record {
	RAW_FRAME = RAW_FIRST,
	RAW_CODE,
};

/*
 * A family can have three kinds of raw record. They are passed to the function `event` of its host code. The second is
 * a batch of the shim.
 */
#define RAW_FAMILIES	      0xff40
#define RAW_OF(family)	      (RAW_FAMILIES + (family))
#define RAW_SECOND_OF(family) (RAW_FAMILIES + FAMILY_MAX + (family))
#define RAW_THIRD_OF(family)  (RAW_FAMILIES + 2 * FAMILY_MAX + (family))
#define RAW_FAMILY(id)	      (((id)-RAW_FAMILIES) & (FAMILY_MAX - 1))

/*
 * The most frames of a stack that are recorded. A deeper one has its innermost and its outermost frames, and a
 * FRAME_CUT between them. Beyond STACK_SKIPPED frames more, FRAME_CUT is the outermost one.
 */
#define STACK_FRAMES  256
#define STACK_OUTER   64
#define STACK_INNER   (STACK_FRAMES - STACK_OUTER - 1)
#define STACK_SKIPPED 1024
/* The most innermost frames in sched_waking, where a walk delays the wake-up of another thread. */
#define STACK_FRAMES_SHORT 64

/* A bit of raw_frame.kind: native code called this Python function, so a loop of the interpreter begins with it. */
#define RAW_FRAME_ENTRY 0x100

struct raw_frame {
	struct event event; /* pid: the process that the frame belongs to */
	u64 offset; /* Python: of the instruction in the bytecode, bytes; native: its address in the process */
	u32 frame; /* its id */
	u32 caller; /* id of the frame that called it; 0: it is the outermost frame */
	u32 code; /* Python: id of the code object, 0: unknown; native: the process (tgid) */
	u32 kind; /* enum frame_kind, and RAW_FRAME_ENTRY */
};

/* The part of a code object that a raw_code contains. */
enum raw_code_part {
	RAW_CODE_NAME,
	RAW_CODE_FILE,
	RAW_CODE_LINES, /* co_linetable, before 3.10 co_lnotab */
	RAW_CODE_PARTS
};

#define RAW_CODE_CHUNK 1024

/* A chunk of a code object; the chunks of one part come in order. */
struct raw_code {
	struct event event;
	u32 code; /* id */
	u32 line; /* co_firstlineno */
	u32 total; /* bytes of this part in all */
	u32 at; /* offset of data in this part */
	u32 size; /* bytes of data */
	u16 version; /* 0x030b: CPython 3.11 */
	u8 part; /* enum raw_code_part */
	u8 width; /* bytes per character of a text: 1 (Latin-1), 2, 4; 0: it could not be read */
	u8 data[RAW_CODE_CHUNK]; /* only the `size` bytes in use are sent */
};
