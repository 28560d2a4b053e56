/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of the Python functions that the user names, which the shim records (docs/python-functions.md). */
#pragma once

#include "core/shim.h"
#include "core/shim_functions.h"

FAMILY(functions, 0x13, FAMILY_ON_REQUEST,
       "calls of the Python functions that --function, --functions-trace or --torch=functions names");

struct functions_call {
	struct span span;
	struct shim_function_call call;
} EVENT(functions_call, 0x1301, "a call of a function");

struct functions_text {
	struct event event;
	struct shim_function_text text_id;
	char text[];
} EVENT(functions_text, 0x1302, "a name, a domain or shapes; recorded once per recording and process");

struct functions_named {
	struct event event;
	struct shim_function_named named;
	char why[];
} EVENT(functions_named, 0x1303, "a function that the user named is traced, is missing, or can't be traced");

struct functions_dropped {
	struct event event;
	struct shim_function_dropped dropped;
} EVENT(functions_dropped, 0x1304, "calls that the shim could not record");

struct functions_shim {
	struct event event;
	struct shim_state shim;
	char text[];
} EVENT(functions_shim, 0x1305, "the shim began to trace functions, stopped, or can't");
