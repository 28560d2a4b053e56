// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/math_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/texts.h"
#include "probes/cublas/cublas.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/saturate.h"
#include "util/search.h"

#define LAUNCHES_MAX (4u << 20) /* 96 MiB; the kernels of further launches belong to no call */

#define GROUPS_MAX (64u << 10) /* calls of further sizes are counted by their function alone */

struct math_thread_key {
	u32 pid, tid;
};

struct math_launch {
	u64 time, ns;
	u32 device;
};

struct math_launches {
	struct math_launch *list;
	u32 n;
};

static int on_work(const struct gpu_work *w, void *arg)
{
	const struct gpu_launch *l = w->launch;
	struct math_calls *a = arg;
	struct math_launches *launches;

	if (w->kind != GPU_KERNEL || w->host_time || w->open || w->end <= w->start)
		return 0;
	a->has_device = true;
	if (!l || !l->tid)
		return 0;
	if (a->launches == LAUNCHES_MAX) {
		a->launches_dropped++;
		return 0;
	}
	a->launches++;
	launches = map__get(&a->threads, &(struct math_thread_key){ l->pid, l->tid });
	return launches && array__push(launches->list, launches->n,
				       (struct math_launch){ l->start, w->end - w->start, w->device }) ?
		       0 :
		       -ENOMEM;
}

COMPARE_BY(by_time, struct math_launch, ASCENDING(time))

static int read_launches(struct math_calls *a)
{
	static const struct gpu_listener listener = { .work = on_work };
	const struct query *q = a->args;
	int err = gpu_model__new(&a->gpu, q->trace, q->names);

	if (!err && trace__has(q->trace, "gpu_kernel"))
		err = gpu_model__read(a->gpu, q->from, q->to, q->pids.n ? &q->pids : NULL, &listener, a, NULL);
	MAP_EACH(struct math_launches *l, &a->threads)
		if (l->n)
			qsort(l->list, l->n, sizeof(*l->list), by_time);
	return err;
}

/* Adds the kernels that were launched within the call. An inner call has taken its kernels before. */
static void take_launches(struct math_calls *a, const struct math_call *c, struct math_group *g,
			  struct math_function *f, u64 flop)
{
	struct math_launches *l = map__find(&a->threads, &(struct math_thread_key){ c->pid, c->tid });
	u32 i = l ? (u32)SEARCH(l->n, j, l->list[j].time < c->start) : 0;
	u64 kernels = 0;

	for (; l && i < l->n && l->list[i].time <= c->end; i++) {
		struct math_launch *launch = &l->list[i];
		const struct gpu_device_facts *device = gpu_model__device(a->gpu, c->pid, launch->device);
		double peak = math_peak__of(device, c->key.unit);

		if (!launch->ns)
			continue;
		kernels++;
		g->device_ns += launch->ns;
		f->device_ns += launch->ns;
		g->possible += peak * (double)launch->ns / 1e9;
		g->has_unknown_peak |= !peak;
		g->has_tf32 |= math_peak__of(device, MATH_TF32) > 0;
		launch->ns = 0;
	}
	g->kernels += kernels;
	f->kernels += kernels;
	a->kernels += kernels;
	if (kernels)
		g->device_flop = saturate__sum(g->device_flop, flop);
}

/* Returns the group of the call's sizes; NULL: no memory, or there are too many groups. */
static struct math_group *group_of(struct math_calls *a, const struct math_key *key)
{
	if (a->groups.n < GROUPS_MAX)
		return map__get(&a->groups, key);
	return map__find(&a->groups, key) ?: &a->others;
}

int math_calls__add(struct math_calls *a, const struct math_call *c)
{
	struct math_size size = { c->key.operation, c->is_complex, c->key.is_right, c->key.m,
				  c->key.n,	    c->key.k,	   c->key.batch };
	struct math_group *g = group_of(a, &c->key);
	struct math_function *f = map__get(&a->functions, &c->key.function);
	u64 flop = 0, ns = c->end - c->start;

	if (!g || !f)
		return -ENOMEM;
	g->has_flop = math_flops__count(&size, &flop);
	f->has_flop |= g->has_flop;
	flop = c->failed ? 0 : c->key.flop ? c->key.flop : flop;
	g->flop = saturate__sum(g->flop, flop);
	f->flop = saturate__sum(f->flop, flop);
	a->flop = saturate__sum(a->flop, flop);
	g->errors += c->failed;
	f->errors += c->failed;
	a->errors += c->failed;
	g->untimed += !c->returned;
	f->untimed += !c->returned;
	a->calls++;
	take_launches(a, c, g, f, flop);
	if (!c->returned)
		return 0;
	a->total += ns;
	return stats__add(&g->time, &a->pool, ns) ?: stats__add(&f->time, &a->pool, ns);
}

/*
 * Did the call fail? All libraries return 0 if not, but NPP's warnings are positive, and TensorRT's functions return an
 * object.
 */
static bool is_error(const char *function, s32 ret)
{
	if (!strncmp(function, "npp", 3))
		return ret < 0;
	return ret && strncmp(function, "create", 6);
}

int math_call__of(struct math_calls *a, const struct view *v, const struct common_fields *f, struct math_call *c)
{
	const char *name = names__probe(a->args->names, (u16)view__s64(v, f->probe));
	u16 flags = (u16)view__s64(v, f->flags);

	*c = (struct math_call){
		.pid = (u32)view__s64(v, f->pid),
		.tid = (u32)view__s64(v, f->tid),
		.start = (u64)view__s64(v, f->start),
		.end = (u64)view__s64(v, f->time),
		.returned = !(flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION)),
	};
	/* a damaged trace may have calls that end before they start */
	c->end = c->end < c->start ? c->start : c->end;
	name = name ? name : v->event->name;
	c->failed = c->returned && is_error(name, (s32)view__s64(v, f->ret));
	c->key.function = texts__number(&a->names, name);
	return c->key.function ? 0 : -ENOMEM;
}

static enum math_operation operation_of(u32 operation)
{
	static const u8 operations[] = {
		[CUBLAS_GEMM] = MATH_GEMM,     [CUBLAS_LT_MATMUL] = MATH_GEMM, [CUBLAS_SYMM] = MATH_SYMM,
		[CUBLAS_SYRK] = MATH_SYRK,     [CUBLAS_SYR2K] = MATH_SYR2K,    [CUBLAS_SYRKX] = MATH_SYRK,
		[CUBLAS_TRMM] = MATH_TRIANGLE, [CUBLAS_TRSM] = MATH_TRIANGLE,  [CUBLAS_GEMV] = MATH_GEMV,
		[CUBLAS_GER] = MATH_GEMV,      [CUBLAS_SYMV] = MATH_SYMV,
	};

	return operation < ARRAY_LEN(operations) ? operations[operation] : MATH_OTHER;
}

static bool is_complex(u32 type)
{
	static const u64 complex_types = 1ull << CUBLAS_C_32F | 1ull << CUBLAS_C_64F | 1ull << CUBLAS_C_16F |
					 1ull << CUBLAS_C_8I | 1ull << CUBLAS_C_8U | 1ull << CUBLAS_C_32I |
					 1ull << CUBLAS_C_32U | 1ull << CUBLAS_C_16BF;

	return type < 64 && complex_types >> type & 1;
}

static void read_sizes(const struct view *v, struct math_call *c)
{
	FIELDS_OF(v->event, operation, m, n, k, batch, transa, transb, side);
	FIELDS_OF(v->event, a_type, b_type, c_type, compute, math_mode);
	struct math_key *key = &c->key;

	key->m = view__s64(v, m);
	key->n = view__s64(v, n);
	key->k = view__s64(v, k);
	key->batch = view__s64(v, batch);
	key->transa = (u32)view__s64(v, transa);
	key->transb = (u32)view__s64(v, transb);
	key->is_right = view__s64(v, side) == CUBLAS_RIGHT;
	key->a_type = (u32)view__s64(v, a_type);
	key->b_type = (u32)view__s64(v, b_type);
	key->c_type = (u32)view__s64(v, c_type);
	key->compute = (u32)view__s64(v, compute);
	/* cublasLtMatmul has no mode: only its compute type decides */
	key->unit = math_peak__unit(key->a_type, key->compute,
				    view__s64(v, operation) == CUBLAS_LT_MATMUL ? (u32)CUBLAS_MATH_DEFAULT :
										  (u32)view__s64(v, math_mode));
	c->is_complex = is_complex(key->a_type);
}

static int on_call(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	const struct schema_field *operation = schema_event__field(rows__event(rows), "operation");
	struct math_calls *a = arg;
	struct math_call c;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		err = math_call__of(a, &v, &f, &c);
		c.key.operation = operation ? operation_of((u32)view__s64(&v, operation)) : MATH_OTHER;
		if (c.key.operation != MATH_OTHER)
			read_sizes(&v, &c);
		if (!err)
			err = math_calls__add(a, &c);
	}
	return err;
}

int math_calls__read(struct math_calls *a, const struct query *args)
{
	int err;

	*a = (struct math_calls){ .args = args };
	map__init(&a->groups, sizeof(struct math_key), sizeof(struct math_group));
	map__init(&a->functions, sizeof(u32), sizeof(struct math_function));
	map__init(&a->threads, sizeof(struct math_thread_key), sizeof(struct math_launches));
	texts__init(&a->names);
	/* reading the work of GPUs takes long */
	if (!trace__has(args->trace, "cublas_call") && !trace__has(args->trace, "cudnn_call") &&
	    !trace__has(args->trace, "cudalib_call"))
		return 0;
	err = read_launches(a);
	/* inner libraries first: the kernels belong to the innermost call */
	if (!err)
		err = query__read_kind(args, "cublas_call", on_call, a);
	if (!err)
		err = math_cudnn__read(a);
	if (!err)
		err = query__read_kind(args, "cudalib_call", on_call, a);
	return err;
}

void math_calls__free(struct math_calls *a)
{
	MAP_EACH(struct math_group *g, &a->groups)
		stats__free(&g->time, &a->pool);
	stats__free(&a->others.time, &a->pool);
	MAP_EACH(struct math_function *f, &a->functions)
		stats__free(&f->time, &a->pool);
	MAP_EACH(struct math_launches *l, &a->threads)
		free(l->list);
	MAPS_FREE(&a->groups, &a->functions, &a->threads, &a->names);
	gpu_model__free(a->gpu);
}

const char *math_calls__function(const struct math_calls *a, u32 function)
{
	return texts__text(&a->names, function);
}
