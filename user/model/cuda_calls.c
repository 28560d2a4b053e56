// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads and counts calls of the CUDA runtime and driver: by function, by thread, and what they returned. */
#include "model/cuda_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/order.h"
#include "util/array.h"

/*
 * Returns the number of a function: that of its probe or, if the trace names no probes, of its event kind. Probes of
 * one name (a function in several libraries) share a number.
 */
static int function_of(struct cuda_calls *a, const struct schema_event *e, u16 probe, u32 *out)
{
	const char *name, *known = names__probe(a->names, probe);
	u32 i, raw = known ? probe : 0x10000u | e->id, *function = map__find(&a->functions, &raw);

	if (!function) {
		function = map__get(&a->functions, &raw);
		if (!function)
			return -ENOMEM;
		*function = raw;
		for (i = 0; known && i < a->functions.n; i++) {
			name = names__probe(a->names, (u16) * (const u32 *)map__key(&a->functions, i));
			if (*(const u32 *)map__key(&a->functions, i) < 0x10000 && name && !strcmp(name, known)) {
				*function = *(const u32 *)map__key(&a->functions, i);
				break;
			}
		}
	}
	*out = *function;
	return 0;
}

const char *cuda_calls__function_name(const struct cuda_calls *a, u32 function)
{
	const struct schema_event *e;
	const char *name;

	name = function < 0x10000 ? names__probe(a->names, (u16)function) : NULL;
	e = name ? NULL : schema__event_by_id(a->schema, (u16)function);
	return name ? name : e ? e->name : "?";
}

bool cuda_calls__is_error(s64 ret)
{
	/* cudaErrorNotReady (600) is an answer. A library gets error 4 if it frees memory after the driver's unload. */
	return ret && ret != 600 && ret != 4;
}

const char *cuda_calls__error_name(const char *function, s64 ret)
{
	static const struct {
		s64 ret;
		const char *runtime, *driver;
	} names[] = {
		{ 1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE" },
		{ 2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY" },
		{ 3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED" },
		{ 100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE" },
		{ 101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE" },
		{ 201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT" },
		{ 209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ 400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE" },
		{ 500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND" },
		{ 700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ 701, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" },
		{ 719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED" },
		{ 801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].ret == ret)
			return strncmp(function, "cuda", 4) ? names[i].driver : names[i].runtime;
	return NULL;
}

static int group__add(struct cuda_calls *a, struct cuda_group *g, u64 ns, bool timed, bool failed)
{
	if (!g)
		return -ENOMEM;
	g->errors += failed;
	g->untimed += !timed;
	return timed ? stats__add(&g->time, &a->pool, ns) : 0;
}

/* A nested call's time is part of the outer call's. */
static void on_inner(const struct nesting_call *call, void *arg)
{
	struct cuda_call_key key = { call->pid, call->tid, call->function, 0 };
	struct cuda_calls *a = arg;
	struct cuda_group *g = map__find(&a->by_thread, &key);

	a->total -= call->end - call->start;
	a->inner++;
	if (g)
		g->inner_ns += call->end - call->start;
}

static int on_returned(struct cuda_calls *a, const struct cuda_return_key *key, u64 start, u64 end)
{
	struct nesting_call call = {
		.pid = key->call.pid, .tid = key->call.tid, .function = key->call.function, .start = start, .end = end
	};
	u64 *n = map__get(&a->returns, key);

	if (!n)
		return -ENOMEM;
	++*n;
	a->total += end - start;
	return nesting__add(&a->nesting, &call);
}

static int on_call(const struct view *v, void *arg)
{
	struct cuda_calls *a = arg;
	const struct common_fields *f = &a->fields[v->event - a->schema->events];
	u64 end = (u64)view__s64(v, f->time), start = (u64)view__s64(v, f->start);
	u64 ns = start < end ? end - start : 0; /* a damaged trace may have calls that end before they start */
	u16 flags = (u16)view__s64(v, f->flags);
	bool returned = !(flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION));
	struct cuda_return_key key = { .call = { (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid), 0, 0 } };
	int err = function_of(a, v->event, (u16)view__s64(v, f->probe), &key.call.function);

	if (err)
		return err;
	/* cudaError_t and CUresult have 32 bits: the register's upper half is undefined. */
	key.ret = (s32)view__s64(v, f->ret);
	err = group__add(a, map__get(&a->by_thread, &key.call), ns, returned,
			 returned && cuda_calls__is_error(key.ret));
	if (!err)
		err = group__add(a, map__get(&a->by_name, &key.call.function), ns, returned,
				 returned && cuda_calls__is_error(key.ret));
	a->calls++;
	a->untimed += !returned;
	if ((flags & EVENT_OPEN) && ns >= a->longest_open) {
		a->longest_open = ns;
		a->stuck = key.call;
	}
	a->open += !!(flags & EVENT_OPEN);
	return err || !returned ? err : on_returned(a, &key, start, start + ns);
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(((struct cuda_calls *)arg)->order, rows);
}

static bool is_cuda_call(const struct cuda_calls *a, const struct schema_event *e)
{
	static const char *const families[] = { "cuda", "cudadrv" };
	const struct schema_family *f;
	u32 i;

	for (i = 0; i < ARRAY_LEN(families); i++) {
		f = schema__family(a->schema, families[i]);
		if (f && e->is_call && EVENT_FAMILY(e->id) == f->id)
			return true;
	}
	return false;
}

static int read_calls(struct cuda_calls *a, const struct query *args)
{
	const struct schema_event **kinds = calloc(a->schema->n_events + 1, sizeof(*kinds));
	u32 i, n = 0;
	int err = 0;

	a->fields = calloc(a->schema->n_events + 1, sizeof(*a->fields));
	a->order = order__new(on_call, a);
	for (i = 0; kinds && a->fields && i < a->schema->n_events; i++) {
		if (!is_cuda_call(a, &a->schema->events[i]))
			continue;
		kinds[n++] = &a->schema->events[i];
		a->fields[i] = common_fields__of(&a->schema->events[i]);
	}
	if (!kinds || !a->fields || !a->order)
		err = -ENOMEM;
	else if (n)
		err = query__read(args, kinds, on_rows, a);
	if (!err)
		err = order__finish(a->order);
	order__free(a->order);
	a->order = NULL;
	free(a->fields);
	a->fields = NULL;
	free(kinds);
	return err;
}

static void free_groups(struct cuda_calls *a, struct map *m)
{
	u32 i;

	for (i = 0; i < m->n; i++)
		stats__free(&((struct cuda_group *)map__value(m, i))->time, &a->pool);
	map__free(m);
}

int cuda_calls__read(struct cuda_calls *a, const struct query *args)
{
	*a = (struct cuda_calls){ .schema = trace__schema(args->trace), .names = args->names };
	map__init(&a->by_thread, sizeof(struct cuda_call_key), sizeof(struct cuda_group));
	map__init(&a->by_name, sizeof(u32), sizeof(struct cuda_group));
	map__init(&a->returns, sizeof(struct cuda_return_key), sizeof(u64));
	map__init(&a->functions, sizeof(u32), sizeof(u32));
	nesting__init(&a->nesting, on_inner, a);
	return read_calls(a, args);
}

void cuda_calls__free(struct cuda_calls *a)
{
	free_groups(a, &a->by_thread);
	free_groups(a, &a->by_name);
	MAPS_FREE(&a->returns, &a->functions);
	nesting__free(&a->nesting);
}

const struct cuda_return_key *cuda_calls__worst_error(const struct cuda_calls *a, u64 *errors)
{
	const struct cuda_return_key *k, *worst = NULL;
	u64 n, most = 0;

	*errors = 0;
	for (u32 i = 0; i < a->returns.n; i++) {
		k = map__key(&a->returns, i);
		n = *(const u64 *)map__value(&a->returns, i);
		if (!cuda_calls__is_error(k->ret))
			continue;
		*errors += n;
		if (n > most) {
			most = n;
			worst = k;
		}
	}
	return worst;
}
