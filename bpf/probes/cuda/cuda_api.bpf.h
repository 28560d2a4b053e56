/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the programs of the runtime and of the driver are written. Most functions exist in both libraries,
 * cudaStreamSynchronize as cuStreamSynchronize. Their programs are written once, in cuda_calls.bpf.h, cuda_copy.bpf.h
 * and cuda_alloc.bpf.h. What differs is defined before this file is included, in cuda.bpf.h and
 * probes/cudadrv/cudadrv.bpf.h:
 *
 *	API, LIBRARY	how names of functions begin, and the file
 *	NAME(copy)	the event and its program
 *	RUNTIME(...)	what only the runtime has
 *	DRIVER(...)	what only the driver has
 *	WITHIN		the families within whose calls no call is recorded
 *	STACKS		are Python stacks requested?
 */
#pragma once

#include "core/args.h"
#include "core/at_call.bpf.h"

/* A list of functions: FN(EventSynchronize) FN_PTSZ(StreamSynchronize) */
#define FN(function)	  API #function ","
#define FN_PTSZ(function) FN(function) API #function "_ptsz,"
#define FN_PTDS(function) FN(function) API #function "_ptds,"

/* A table of groups of functions, SYNCS(GROUP), makes an enum and the program's list; a group may have no function. */
#define GROUP_NUMBER(number, functions)	   number,
#define GROUP_FUNCTIONS(number, functions) functions ";"

#define CALL__STACK(ctx, e)				 AT_CALL__STACK(ctx, e, STACKS)
#define CALL__PROGRAM(name, section, at_return, at_last) SPAN__PROGRAM(name, section, name, at_return, WITHIN, at_last)

#define CALL(event, functions) CALL__PROGRAM(NAME(event), "span/" LIBRARY ":" functions, SPAN__NOTHING, SPAN__NOTHING)
#define CALL_EXIT(event, functions, at_return) \
	CALL__PROGRAM(NAME(event), "span/" LIBRARY ":" functions, at_return, SPAN__NOTHING)
/* With a Python stack: calls that give the device work, allocate or wait. */
#define CALL_STACK(event, functions) \
	CALL__PROGRAM(NAME(event), "span/" LIBRARY ":" functions, SPAN__NOTHING, CALL__STACK)
#define CALL_STACK_EXIT(event, functions, at_return) \
	CALL__PROGRAM(NAME(event), "span/" LIBRARY ":" functions, at_return, CALL__STACK)
/* Only with --FAMILY=all. */
#define CALL_IF_ALL(event, functions) \
	CALL__PROGRAM(NAME(event), "span+all/" LIBRARY ":" functions, SPAN__NOTHING, SPAN__NOTHING)
#define CALL_EXIT_IF_ALL(event, functions, at_return) \
	CALL__PROGRAM(NAME(event), "span+all/" LIBRARY ":" functions, at_return, SPAN__NOTHING)

/*
 * At the return, reads the handle that the call has stored at the address SPAN_OUT(e), one of its arguments; 0: this
 * call stores none.
 */
#define HANDLE_RETURN(event, field)                                        \
	static __always_inline void event##_return(struct NAME(event) * e) \
	{                                                                  \
		if (SPAN_OUT(e))                                           \
			e->field = args__out(&e->call, SPAN_OUT(e));       \
	}
