// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loading of device code, lookups of the kernels in it, and contexts. */
#include "cudadrv.bpf.h"

HANDLE_RETURN(module, module)

/* cuModuleLoad*(module *, ...), cuLibraryLoad*(library *, ...), cuModuleUnload(module), cuLibraryUnload(library) */
CALL_EXIT(module,
	  "cuModuleLoad,cuModuleLoadData,cuModuleLoadDataEx,cuModuleLoadFatBinary,cuLibraryLoadData,"
	  "cuLibraryLoadFromFile;"
	  "cuModuleUnload,cuLibraryUnload",
	  module_return)
{
	u64 first = ARG1(ctx);

	barrier_var(first);
	SPAN_OUT(e) = group ? 0 : first;
	if (group)
		e->module = first;
}

#define CONTEXTS(GROUP)                                                                                             \
	GROUP(CONTEXT_DESTROY, FN(CtxDestroy) FN(CtxDestroy_v2)) /* (context) */                                    \
	GROUP(CONTEXT_CREATE, FN(CtxCreate) FN(CtxCreate_v2)) /* (context *, flags, device) */                      \
	GROUP(CONTEXT_CREATE_V3, FN(CtxCreate_v3)) /* (context *, params, n, flags, device) */                      \
	GROUP(CONTEXT_CREATE_V4, FN(CtxCreate_v4)) /* (context *, params, flags, device) */                         \
	GROUP(CONTEXT_RETAIN, FN(DevicePrimaryCtxRetain)) /* (context *, device) */                                 \
	GROUP(CONTEXT_RELEASE, FN(DevicePrimaryCtxRelease) FN(DevicePrimaryCtxRelease_v2) FN(DevicePrimaryCtxReset) \
				       FN(DevicePrimaryCtxReset_v2)) /* (device) */

enum { CONTEXTS(GROUP_NUMBER) };

HANDLE_RETURN(context, context)

CALL_EXIT(context, CONTEXTS(GROUP_FUNCTIONS), context_return)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = group >= CONTEXT_CREATE && group <= CONTEXT_RETAIN ? a.a1 : 0;
	e->device = -1;
	switch (group) {
	case CONTEXT_DESTROY:
		e->context = a.a1;
		break;
	case CONTEXT_CREATE:
		e->api_flags = a.a2;
		e->device = a.a3;
		break;
	case CONTEXT_CREATE_V3:
		e->api_flags = a.a4;
		e->device = a.a5;
		break;
	case CONTEXT_CREATE_V4:
		e->api_flags = a.a3;
		e->device = a.a4;
		break;
	case CONTEXT_RETAIN:
		e->device = a.a2;
		break;
	default:
		e->device = a.a1;
	}
}

/* A lookup with its name. This record is too large for the stack of open calls, and lookups are rare. */
union cudadrv_lookup {
	struct cudadrv_function function;
	char room[sizeof(struct cudadrv_function) + CUDADRV_NAME];
};

struct {
	TASK_STORAGE(union cudadrv_lookup);
} cudadrv_lookups SEC(".maps");

#define LOOKUPS(GROUP)                                                                             \
	GROUP(LOOKUP, FN(ModuleGetFunction) FN(LibraryGetKernel)) /* (function *, module, name) */ \
	GROUP(LOOKUP_OF_KERNEL, FN(KernelGetFunction)) /* (function *, kernel) */                  \
	GROUP(LOOKUP_NAME, FN(FuncGetName) FN(KernelGetName)) /* (name *, function) */

enum { LOOKUPS(GROUP_NUMBER) };

#define LOOKUP_SHIFT 62 /* above the address of the result: the kind of the lookup */

/*
 * The address of the name, stored behind the record that waits for the return. It is not a field, because a trace
 * should not show it.
 */
static __always_inline u64 *lookup_name(struct cudadrv_function *e)
{
	_Static_assert(sizeof(*e) + sizeof(u64) <= CALL_MAX, "record too large");
	return (u64 *)(e + 1);
}

static __always_inline void lookup_entry(struct pt_regs *ctx, struct cudadrv_function *e, u64 group)
{
	struct args a = args__read(ctx);

	SPAN_OUT(e) = a.a1 | group << LOOKUP_SHIFT;
	*lookup_name(e) = group == LOOKUP ? a.a3 : 0;
	if (group == LOOKUP)
		e->module = a.a2;
	else if (group == LOOKUP_OF_KERNEL)
		e->kernel = a.a2;
	else
		e->function = a.a2;
}

/* Emits a lookup with the results of the call. A global function, so that the verifier checks it once. */
__weak __noinline int cudadrv_send_lookup(struct cudadrv_function *e, u64 out, u64 name)
{
	union cudadrv_lookup *l;
	char *text;
	u64 value;
	long n = 0;

	l = bpf_task_storage_get(&cudadrv_lookups, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e)
		return 0;
	if (!l) {
		loss__count(EVENT_FAMILY(ID_cudadrv_function), LOSS_STORAGE, bpf_ktime_get_ns());
		return 0;
	}
	value = args__out(&e->call, out & ((1ULL << LOOKUP_SHIFT) - 1));
	if (out >> LOOKUP_SHIFT == LOOKUP_NAME)
		name = value;
	else
		e->function = value;
	__builtin_memcpy(l, e, sizeof(*e));
	text = l->room + sizeof(*e);
	if (name)
		n = bpf_probe_read_user_str(text, CUDADRV_NAME, (const void *)name);
	if (n <= 0 || n > CUDADRV_NAME) {
		if (name)
			loss__count(EVENT_FAMILY(ID_cudadrv_function), LOSS_READ, bpf_ktime_get_ns());
		n = 1;
	}
	emit(l, sizeof(*e) + ((n - 1) & (CUDADRV_NAME - 1)));
	return 0;
}

/* Recorded within calls of the runtime, too: later launches only have the handle, and this event gives its name. */
SEC("span/" LIBRARY ":" LOOKUPS(GROUP_FUNCTIONS))
int cudadrv_function(struct pt_regs *ctx)
{
	u64 key = span__key(ctx), cookie, out;
	struct cudadrv_function *e;

	if (span__returning(ctx, key)) {
		e = span__close(ctx, key);
		if (e) {
			out = SPAN_OUT(e);
			cudadrv_send_lookup(e, out, *lookup_name(e));
		}
		return 0;
	}
	cookie = bpf_get_attach_cookie(ctx);
	e = span__open(ctx, key, cookie, ID_cudadrv_function, sizeof(*e), 0);
	if (!e)
		return 1;
	lookup_entry(ctx, e, cookie >> COOKIE_GROUP_SHIFT);
	return span__opened((struct call *)e);
}
