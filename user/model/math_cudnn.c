// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sizes of cuDNN's calls. A call names descriptors, which were set before: of the older functions those of tensors
 * and filters; of the graph API a plan, which has a configuration, which has an engine or was found by heuristics for
 * a graph, which has operations, which have tensors. Programs destroy tensors and graphs while they keep the plan, so
 * what a descriptor computes is copied along this chain when it is set.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/math_private.h"
#include "model/order.h"
#include "probes/cublas/cublas.h"
#include "probes/cudnn/cudnn.h"
#include "util/array.h"
#include "util/saturate.h"

#define DESCRIPTORS_MAX (256u << 10) /* 64 MiB; then all are forgotten, so later calls may have no sizes */

struct descriptor_key {
	u64 descriptor;
	u32 pid, unused;
};

struct tensor {
	u32 type, dimensions;
	s64 sizes[8];
};

/* What a graph, or a part of the chain to the plan, computes */
struct work {
	struct math_key key; /* without the function */
	bool is_known;
};

struct descriptor {
	struct tensor tensor;
	u64 parts[3]; /* of an operation: filter, input and result; or A, B and C */
	u32 kind; /* of an operation: the attribute of its first part; 0: it is none */
	struct work work;
};

struct cudnn {
	struct math_calls *calls;
	struct map descriptors; /* struct descriptor_key -> struct descriptor */
	struct common_fields call_fields;
	const struct schema_event *call, *setting;
};

static struct descriptor *find(const struct cudnn *c, u32 pid, u64 descriptor)
{
	return map__find(&c->descriptors, &(struct descriptor_key){ .descriptor = descriptor, .pid = pid });
}

static struct descriptor *find_or_add(struct cudnn *c, u32 pid, u64 descriptor)
{
	if (c->descriptors.n >= DESCRIPTORS_MAX && !find(c, pid, descriptor)) {
		map__free(&c->descriptors);
		map__init(&c->descriptors, sizeof(struct descriptor_key), sizeof(struct descriptor));
	}
	return map__get(&c->descriptors, &(struct descriptor_key){ .descriptor = descriptor, .pid = pid });
}

static const struct tensor *tensor_of(const struct cudnn *c, u32 pid, u64 descriptor)
{
	const struct descriptor *d = find(c, pid, descriptor);

	return d && d->tensor.dimensions >= 2 && d->tensor.dimensions <= ARRAY_LEN(d->tensor.sizes) ? &d->tensor : NULL;
}

static u32 type_of(u32 type)
{
	static const u8 types[] = {
		[CUDNN_FLOAT] = CUBLAS_R_32F,	     [CUDNN_DOUBLE] = CUBLAS_R_64F,	  [CUDNN_HALF] = CUBLAS_R_16F,
		[CUDNN_INT8] = CUBLAS_R_8I,	     [CUDNN_INT32] = CUBLAS_R_32I,	  [CUDNN_INT8X4] = CUBLAS_R_8I,
		[CUDNN_UINT8] = CUBLAS_R_8U,	     [CUDNN_UINT8X4] = CUBLAS_R_8U,	  [CUDNN_INT8X32] = CUBLAS_R_8I,
		[CUDNN_BFLOAT16] = CUBLAS_R_16BF,    [CUDNN_INT64] = CUBLAS_R_64I,	  [CUDNN_BOOLEAN] = CUBLAS_R_8U,
		[CUDNN_FP8_E4M3] = CUBLAS_R_8F_E4M3, [CUDNN_FP8_E5M2] = CUBLAS_R_8F_E5M2,
	};

	return type < ARRAY_LEN(types) ? types[type] : ~0u;
}

static s64 product(const s64 *sizes, u32 n)
{
	u64 all = 1;

	for (u32 i = 0; i < n; i++)
		all = saturate__product(all, sizes[i] > 0 ? (u64)sizes[i] : 0);
	return all > LLONG_MAX ? LLONG_MAX : (s64)all;
}

/* A TF32 product may stand for one of FP32, which cuDNN's mode decides: it is not recorded. */
static void set_types(struct math_key *key, const struct tensor *a, const struct tensor *b, const struct tensor *c)
{
	key->a_type = type_of(a->type);
	key->b_type = type_of(b->type);
	key->c_type = type_of(c->type);
	key->compute = ~0u;
	key->unit = math_peak__unit(key->a_type, key->compute, CUBLAS_MATH_UNKNOWN);
}

/*
 * A convolution as a product of matrices: points of the images of the batch, times channels of the result, summed over
 * a filter. The filter's sizes are those of one group.
 */
static bool convolution(const struct tensor *x, const struct tensor *w, const struct tensor *y, struct math_key *key)
{
	if (!x || !w || !y || y->sizes[1] <= 0 || w->sizes[0] <= 0)
		return false;
	key->operation = MATH_CONVOLUTION;
	key->m = product(y->sizes, y->dimensions) / y->sizes[1];
	key->n = y->sizes[1];
	key->k = product(w->sizes + 1, w->dimensions - 1);
	key->batch = 1;
	set_types(key, x, w, y);
	return true;
}

static bool matmul(const struct tensor *a, const struct tensor *b, const struct tensor *c, struct math_key *key)
{
	u32 n = c ? c->dimensions : 0;

	if (!a || !b || n < 2 || a->dimensions != n)
		return false;
	key->operation = MATH_GEMM;
	key->m = c->sizes[n - 2];
	key->n = c->sizes[n - 1];
	key->k = a->sizes[n - 1];
	key->batch = product(c->sizes, n - 2);
	set_types(key, a, b, c);
	return true;
}

/* Adds an operation of a graph: several have the operations of all, and the sizes of the first. */
static void add_operation(const struct cudnn *c, u32 pid, u64 operation, struct work *work)
{
	const struct descriptor *d = find(c, pid, operation);
	const struct tensor *parts[3];
	struct math_key key = {};
	struct math_size size;
	u64 flop;

	for (u32 i = 0; d && i < ARRAY_LEN(parts); i++)
		parts[i] = tensor_of(c, pid, d->parts[i]);
	if (!d || !d->kind)
		return;
	if (!(d->kind == CUDNN_MATMUL_A ? matmul(parts[0], parts[1], parts[2], &key) :
					  convolution(parts[1], parts[0], parts[2], &key)))
		return;
	size = (struct math_size){ key.operation, false, false, key.m, key.n, key.k, key.batch };
	math_flops__count(&size, &flop);
	if (!work->is_known)
		work->key = key;
	work->is_known = true;
	work->key.products++;
	work->key.flop = saturate__sum(work->key.flop, flop);
}

static const struct {
	u32 attribute, kind, part;
} parts[] = {
	{ CUDNN_FORWARD_W, CUDNN_FORWARD_W, 0 },
	{ CUDNN_FORWARD_X, CUDNN_FORWARD_W, 1 },
	{ CUDNN_FORWARD_Y, CUDNN_FORWARD_W, 2 },
	{ CUDNN_BACKWARD_DATA_W, CUDNN_FORWARD_W, 0 },
	{ CUDNN_BACKWARD_DATA_DX, CUDNN_FORWARD_W, 1 },
	{ CUDNN_BACKWARD_DATA_DY, CUDNN_FORWARD_W, 2 },
	{ CUDNN_BACKWARD_FILTER_DW, CUDNN_FORWARD_W, 0 },
	{ CUDNN_BACKWARD_FILTER_X, CUDNN_FORWARD_W, 1 },
	{ CUDNN_BACKWARD_FILTER_DY, CUDNN_FORWARD_W, 2 },
	{ CUDNN_MATMUL_A, CUDNN_MATMUL_A, 0 },
	{ CUDNN_MATMUL_B, CUDNN_MATMUL_A, 1 },
	{ CUDNN_MATMUL_C, CUDNN_MATMUL_A, 2 },
};

static void set_part(struct descriptor *d, u32 attribute, u64 value)
{
	for (u32 i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].attribute == attribute) {
			d->kind = parts[i].kind;
			d->parts[parts[i].part] = value;
		}
}

static int set_results(struct cudnn *c, u32 pid, const struct work *work, const s64 *values, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct descriptor *d = find_or_add(c, pid, (u64)values[i]);

		if (!d)
			return -ENOMEM;
		d->work = *work;
	}
	return 0;
}

static void set_dimensions(struct tensor *t, const s64 *values, u32 n)
{
	t->dimensions = n;
	memcpy(t->sizes, values, sizeof(t->sizes));
}

/* The work of the descriptor that this one names */
static struct work work_of(const struct cudnn *c, u32 pid, u64 descriptor)
{
	const struct descriptor *d = find(c, pid, descriptor);

	return d ? d->work : (struct work){};
}

static void read_values(const struct view *v, s64 values[CUDNN_VALUES])
{
	char name[16];

	for (u32 i = 0; i < CUDNN_VALUES; i++) {
		snprintf(name, sizeof(name), "value_%u", i);
		values[i] = view__get(v, name);
	}
}

static int on_setting(struct cudnn *c, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid"), attribute = (u32)view__get(v, "attribute");
	u32 n = (u32)view__get(v, "count"), recorded = n < CUDNN_VALUES ? n : CUDNN_VALUES;
	u64 descriptor = (u64)view__get(v, "descriptor");
	struct descriptor *d = attribute == CUDNN_DESTROYED ? find(c, pid, descriptor) :
							      find_or_add(c, pid, descriptor);
	s64 values[CUDNN_VALUES];
	struct work work;

	if (!d)
		return attribute == CUDNN_DESTROYED ? 0 : -ENOMEM;
	read_values(v, values);
	switch (attribute) {
	case CUDNN_DESTROYED:
		*d = (struct descriptor){};
		break;
	case CUDNN_DESCRIBED:
		d->tensor.type = (u32)view__get(v, "type");
		set_dimensions(&d->tensor, values, n);
		break;
	case CUDNN_TENSOR_TYPE:
		d->tensor.type = (u32)values[0];
		break;
	case CUDNN_TENSOR_DIMENSIONS:
		set_dimensions(&d->tensor, values, n);
		break;
	case CUDNN_GRAPH_OPERATIONS:
		d->work = (struct work){};
		for (u32 i = 0; i < recorded; i++)
			add_operation(c, pid, (u64)values[i], &d->work);
		break;
	case CUDNN_HEURISTICS_GRAPH:
	case CUDNN_ENGINE_GRAPH:
	case CUDNN_CONFIGURATION_ENGINE:
	case CUDNN_PLAN_CONFIGURATION:
		d->work = work_of(c, pid, (u64)values[0]);
		break;
	case CUDNN_HEURISTICS_RESULTS:
		work = d->work; /* the map's entries move when it grows */
		return set_results(c, pid, &work, values, recorded);
	default:
		set_part(d, attribute, (u64)values[0]);
	}
	return 0;
}

static int on_call(struct cudnn *c, const struct view *v)
{
	struct math_call call;
	int err = math_call__of(c->calls, v, &c->call_fields, &call);
	u32 operation = (u32)view__get(v, "operation"), function = call.key.function;

	if (operation == CUDNN_CONVOLUTION)
		convolution(tensor_of(c, call.pid, (u64)view__get(v, "x")),
			    tensor_of(c, call.pid, (u64)view__get(v, "w")),
			    tensor_of(c, call.pid, (u64)view__get(v, "y")), &call.key);
	if (operation == CUDNN_EXECUTE)
		call.key = work_of(c, call.pid, (u64)view__get(v, "plan")).key;
	call.key.function = function;
	if (err || call.end < c->calls->args->from)
		return err;
	return math_calls__add(c->calls, &call);
}

static int on_event(const struct view *v, void *arg)
{
	struct cudnn *c = arg;

	return v->event == c->call ? on_call(c, v) : on_setting(c, v);
}

static int on_rows(const struct rows *rows, void *arg)
{
	return order__add(arg, rows);
}

int math_cudnn__read(struct math_calls *a)
{
	const struct schema *schema = trace__schema(a->args->trace);
	struct cudnn c = {
		.calls = a,
		.call = schema__event(schema, "cudnn_call"),
		.setting = schema__event(schema, "cudnn_descriptor"),
	};
	const struct schema_event *kinds[] = { c.call, c.setting, NULL };
	struct query q = *a->args;
	struct order *order;
	int err;

	if (!c.call || !c.setting)
		return 0;
	/* descriptors may be older than the selected time */
	q.from = 0;
	c.call_fields = common_fields__of(c.call);
	map__init(&c.descriptors, sizeof(struct descriptor_key), sizeof(struct descriptor));
	order = order__new(on_event, &c);
	err = order ? query__read(&q, kinds, on_rows, order) : -ENOMEM;
	if (!err)
		err = order__finish(order);
	order__free(order);
	map__free(&c.descriptors);
	return err;
}
