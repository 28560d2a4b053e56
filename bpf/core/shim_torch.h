/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of PyTorch's calls that the shim makes in the threads that make them, handed over at its site
 * sonde_cupti_torch. Bodies are the beginnings of the events of family torch with these numbers.
 */
#pragma once

#include "event.h"

/* Equal to the low byte of the event's id. */
enum shim_torch_kind {
	SHIM_TORCH_OP = 0x01,
	SHIM_TORCH_NAME = 0x02,
	SHIM_TORCH_NODE = 0x03,
	SHIM_TORCH_RANGE = 0x05,
	SHIM_TORCH_COST = 0x08,
	SHIM_TORCH_DROPPED = 0x0c,
	SHIM_TORCH_STATE = 0x0d,
	SHIM_TORCH_REST = 0x0f,
	SHIM_TORCH_STEP = 0x10,
};

struct shim_torch_call {
	u64 name; /* of a record SHIM_TORCH_NAME */
	s64 sequence; /* -1: none */
	u32 inner; /* recorded calls within it */
	u32 thread; /* PyTorch's number of the thread that made the node with this sequence number; 0: none */
	u32 hits; /* calls within it, but not within a recorded call in it, that are not recorded */
	u32 pad;
};

/* What recording takes, measured in this process, ns; as in event torch_cost. */
struct shim_torch_cost {
	u64 call, own, entry, hit;
};

#define SHIM_TORCH_NAME_MAX 95 /* characters; a longer name is cut */

struct shim_torch_range {
	char name[104];
};

/* A time for which only ranges are recorded, so that all stays within the budget. */
struct shim_torch_rest {
	u64 steps DOC("of training that ended in it");
	u64 cost UNIT(ns) DOC(
		"of the calls recorded since the last rest, of ranges in the last rest, and of beginning to record, estimated");
};

struct shim_torch_step {
	u64 step;
	u32 cycle; /* 0 */
	u32 pad;
};

enum torch_drop_reason {
	TORCH_LANE_FULL = 1, /* the thread's buffer was full */
	TORCH_TOO_MANY, /* more threads than the shim has room for, or more calls within each other */
	TORCH_PROCESS_ENDED, /* the process ended before it handed over the last 0.1 s: number unknown */
};

struct shim_torch_dropped {
	u64 records DOC("since the last such event");
	enum torch_drop_reason reason;
	u32 pad;
};
