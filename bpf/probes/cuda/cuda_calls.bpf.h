/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bodies of programs for calls that the runtime (cuda_*.bpf.c) and the driver (probes/cudadrv/cudadrv_*.bpf.c) both
 * have, with the same arguments. Both list the functions in the same order of groups. `e` is the event of either, which
 * have these fields in common (cuda_events.h). They are macros because the two events are different types.
 */
#pragma once

#include "core/args.h"

/*
 * At the return, reads the handle that the call has stored at the address SPAN_OUT(e), one of its arguments; 0: this
 * call stores none.
 */
#define CUDA_HANDLE_RETURN(name, type, field)                        \
	static __always_inline void name(struct type *e)             \
	{                                                            \
		if (SPAN_OUT(e))                                     \
			e->field = args__out(&e->call, SPAN_OUT(e)); \
	}

#define CUDA_ELAPSED_RETURN(type)                                                                        \
	static __always_inline void elapsed_return(struct type *e)                                       \
	{                                                                                                \
		if (!e->call.ret)                                                                        \
			bpf_probe_read_user(&e->elapsed_ms, sizeof(e->elapsed_ms), (void *)SPAN_OUT(e)); \
	}

enum {
	GRAPH_INSTANTIATE,
	GRAPH_UPDATE,
	GRAPH_EXEC_DESTROY,
	GRAPH_DESTROY,
	GRAPH_CREATE,
};

#define OUT_IS_GRAPH (1ULL << 63)

#define CUDA_GRAPH_RETURN(type)                                             \
	static __always_inline void graph_return(struct type *e)            \
	{                                                                   \
		u64 out = SPAN_OUT(e);                                      \
		u64 v = out ? args__out(&e->call, out & ~OUT_IS_GRAPH) : 0; \
                                                                            \
		if (out & OUT_IS_GRAPH)                                     \
			e->graph = v;                                       \
		else if (out)                                               \
			e->exec = v;                                        \
	}

/* GraphInstantiate*(exec *, graph, ...), GraphExecUpdate(exec, graph, ...), GraphCreate(graph *, flags) */
#define CUDA_GRAPH(ctx, e, group)                                                                                    \
	do {                                                                                                         \
		u64 first = ARG1(ctx), second = ARG2(ctx);                                                           \
                                                                                                                     \
		barrier_var(first);                                                                                  \
		barrier_var(second);                                                                                 \
		SPAN_OUT(e) = group == GRAPH_INSTANTIATE ? first : group == GRAPH_CREATE ? first | OUT_IS_GRAPH : 0; \
		if (group == GRAPH_INSTANTIATE || group == GRAPH_UPDATE)                                             \
			e->graph = second;                                                                           \
		if (group == GRAPH_UPDATE || group == GRAPH_EXEC_DESTROY)                                            \
			e->exec = first;                                                                             \
		if (group == GRAPH_DESTROY)                                                                          \
			e->graph = first;                                                                            \
	} while (0)

/* MemPoolDestroy(pool), MemPoolTrimTo(pool, bytes), MemPoolCreate(pool *, props) */
#define CUDA_POOL(ctx, e, group)                           \
	do {                                               \
		u64 first = ARG1(ctx), second = ARG2(ctx); \
                                                           \
		barrier_var(first);                        \
		barrier_var(second);                       \
		SPAN_OUT(e) = group == 2 ? first : 0;      \
		if (group < 2)                             \
			e->pool = first;                   \
		if (group == 1)                            \
			e->bytes = second;                 \
	} while (0)

/* *HostRegister(address, bytes, flags), *HostUnregister(address) */
#define CUDA_HOST_REGISTER(ctx, e, group)         \
	do {                                      \
		e->address = ARG1(ctx);           \
		if (group == 0) {                 \
			e->bytes = ARG2(ctx);     \
			e->api_flags = ARG3(ctx); \
		}                                 \
	} while (0)

/* Groups of allocations that both families have; a family's own groups begin at ALLOC_COMMON. */
enum {
	ALLOC_PLAIN,
	ALLOC_HOST,
	ALLOC_HOST_FLAGS,
	ALLOC_MANAGED,
	ALLOC_ASYNC,
	ALLOC_POOL,
	ALLOC_PITCH,
	ALLOC_COMMON,
};

/* The cases of a switch over the group. All begin with (address *, ...). */
#define CUDA_ALLOC_CASES(e, a)                                    \
	case ALLOC_PLAIN:                                         \
		break;                                            \
	case ALLOC_HOST:                                          \
		e->memory = CUDA_MEMORY_HOST;                     \
		break;                                            \
	case ALLOC_HOST_FLAGS:                                    \
		e->memory = CUDA_MEMORY_HOST;                     \
		e->api_flags = a.a3;                              \
		break;                                            \
	case ALLOC_MANAGED:                                       \
		e->memory = CUDA_MEMORY_MANAGED;                  \
		e->api_flags = a.a3;                              \
		break;                                            \
	case ALLOC_ASYNC:                                         \
		e->memory = CUDA_MEMORY_POOL;                     \
		e->stream = a.a3;                                 \
		break;                                            \
	case ALLOC_POOL:                                          \
		e->memory = CUDA_MEMORY_POOL;                     \
		e->pool = a.a3;                                   \
		e->stream = a.a4;                                 \
		break;                                            \
	case ALLOC_PITCH: /* address *, pitch *, width, height */ \
		e->bytes = a.a3 * a.a4;                           \
		break
