/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of calls of Python functions that the shim makes in the threads that call them, handed over at its site
 * sonde_cupti_functions, and how sonde states which functions those are. Texts are recorded once, by an id.
 */
#pragma once

#include "event.h"

/*
 * The functions to trace, in the data of the shim (sonde_cupti_functions_configuration): sonde writes the text and then
 * its size. Its lines are `torch`, or MODULE, QUALNAME, DOMAIN and COLOUR (ARGB, hexadecimal) with tabs between them.
 * A program that sonde starts has the text in the environment variable SONDE_FUNCTIONS.
 */
#define SHIM_CONFIGURATION	 "sonde-functions"
#define SHIM_CONFIGURATION_BYTES 32768
struct shim_configuration {
	char magic[16];
	u32 size; /* of the text; 0: none was written */
	u32 pad[3];
	char text[SHIM_CONFIGURATION_BYTES];
};

/* Equal to the low byte of the event's id. */
enum shim_function_kind {
	FUNCTION_CALL = 1,
	FUNCTION_TEXT,
	FUNCTION_NAMED,
	FUNCTION_DROPPED,
	FUNCTION_STATE,
};

struct shim_function_call {
	u64 name UNIT(text);
	u64 domain UNIT(text) DOC("0: none");
	u64 shapes UNIT(text) DOC("of the tensors among the arguments; 0: none");
	u32 color UNIT(hex) DOC("ARGB, as the user gave it; 0: none");
	u16 failed DOC("1: the call was left by an exception");
	u16 generator DOC("1: the call made a generator or a coroutine, whose code runs later");
};

/* Followed by the text, padded with NULs. */
struct shim_function_text {
	u64 number UNIT(hex) DOC("hash of the text, by which other events refer to it");
};

enum function_state {
	FUNCTION_TRACED = 1,
	FUNCTION_MISSING, /* its module is not imported yet, or has no such name */
	FUNCTION_REFUSED, /* it can't be traced; the text has the reason */
};

/* Followed by the reason of a refusal. */
struct shim_function_named {
	u64 name UNIT(text);
	enum function_state state;
	u32 pad;
};

enum function_drop_reason {
	FUNCTION_LANE_FULL = 1, /* the thread's buffer was full */
	FUNCTION_TOO_MANY, /* more threads than the shim has room for */
	FUNCTION_PROCESS_ENDED, /* the process ended before it handed over the last 0.1 s: number unknown */
};

struct shim_function_dropped {
	u64 records DOC("since the last such event");
	enum function_drop_reason reason;
	u32 pad;
};
