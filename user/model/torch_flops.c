// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The floating-point operations of a call, by the sizes of its tensors: as torch.utils.flop_counter counts them, and of
 * element-wise operators as torch.profiler does (with_flops). A multiplication and an addition are two operations.
 *
 * For the gradient of a grouped convolution's weight flop_counter counts as many operations as without groups. This
 * file does the same, so that both report equal numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "model/torch_private.h"
#include "probes/torch/torch.h"
#include "util/array.h"
#include "util/saturate.h"

#define SIZES_MAX ARRAY_LEN(((struct torch_tensor *)0)->sizes)

/* The tensors of a call */
struct tensors {
	const struct torch_tensor *list;
	u32 n;
};

static const struct torch_tensor *tensor_of(const struct tensors *t, u32 argument, u32 element)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->list[i].argument == argument && t->list[i].element == element)
			return t->list[i].dimensions <= SIZES_MAX ? &t->list[i] : NULL;
	return NULL;
}

/* Returns the sizes of an argument with that many dimensions; NULL: not recorded, or it has another number. */
static const u64 *sizes_of(const struct tensors *t, u32 argument, u32 dimensions)
{
	const struct torch_tensor *tensor = tensor_of(t, argument, 0);

	return tensor && tensor->dimensions == dimensions ? tensor->sizes : NULL;
}

/* A product of sizes; they are untrusted, so it may be too large, and is cut then. */
static u64 times(u64 a, u64 b)
{
	return saturate__product(a, b);
}

/* Each formula returns false where the sizes are not known. first: the number of its first argument. */
typedef bool (*formula)(const struct tensors *t, u32 first, u64 *flops);

static u64 product_of(u64 rows, u64 inner, u64 columns)
{
	return times(2, times(rows, times(inner, columns)));
}

static bool matrices(const struct tensors *t, u32 first, u64 *flops)
{
	const u64 *a = sizes_of(t, first, 2), *b = sizes_of(t, first + 1, 2);

	if (!a || !b)
		return false;
	*flops = product_of(a[0], a[1], b[1]);
	return true;
}

static bool batches(const struct tensors *t, u32 first, u64 *flops)
{
	const u64 *a = sizes_of(t, first, 3), *b = sizes_of(t, first + 1, 3);

	if (!a || !b)
		return false;
	*flops = times(a[0], product_of(a[1], a[2], b[2]));
	return true;
}

static bool elements(const struct tensors *t, u32 first, u64 *flops)
{
	const struct torch_tensor *a = tensor_of(t, first, 0);

	*flops = 1;
	for (u32 i = 0; a && i < a->dimensions; i++)
		*flops = times(*flops, a->sizes[i]);
	return a;
}

/* The sizes beyond the first two: of an image, or of a filter */
static u64 area_of(const struct torch_tensor *t)
{
	u64 area = 1;

	for (u32 i = 2; i < t->dimensions; i++)
		area = times(area, t->sizes[i]);
	return area;
}

/* Each point of the image meets each element of the filter, for each pair of channels and each image of the batch. */
static u64 convolved(u64 area, u64 filter, u64 batch, u64 channels, u64 others)
{
	return times(2, times(times(area, filter), times(batch, times(channels, others))));
}

/* Returns the tensor of the result; NULL: not recorded, or undefined. */
static const struct torch_tensor *result_of(const struct tensors *t, u32 element, bool *transposed)
{
	const struct torch_tensor *found = tensor_of(t, TORCH_TRANSPOSED_RESULT, element);

	*transposed |= found != NULL;
	return found ? found : tensor_of(t, TORCH_RESULT, element);
}

static bool convolution(const struct tensors *t, u32 first, u64 *flops)
{
	bool transposed = false;
	const struct torch_tensor *in = tensor_of(t, first, 0), *weight = tensor_of(t, first + 1, 0);
	const struct torch_tensor *out = result_of(t, 0, &transposed);

	if (!in || !weight || !out || in->dimensions < 2 || weight->dimensions < 2)
		return false;
	*flops = convolved(area_of(transposed ? in : out), area_of(weight), in->sizes[0], weight->sizes[0],
			   weight->sizes[1]);
	return true;
}

/* The gradients of the input and of the weight, each if it was requested: then the result has it. */
static bool convolution_backward(const struct tensors *t, u32 first, u64 *flops)
{
	bool transposed = false;
	const struct torch_tensor *grad = tensor_of(t, first, 0), *in = tensor_of(t, first + 1, 0);
	const struct torch_tensor *weight = tensor_of(t, first + 2, 0);
	const struct torch_tensor *grad_in = result_of(t, 0, &transposed), *grad_weight = result_of(t, 1, &transposed);
	const struct torch_tensor *grad_bias = result_of(t, 2, &transposed);

	if (!grad || !in || !weight || grad->dimensions < 2 || in->dimensions < 2 || weight->dimensions < 2 ||
	    (!grad_in && !grad_weight && !grad_bias))
		return false;
	*flops = 0;
	if (grad_in)
		*flops = convolved(area_of(transposed ? grad_in : grad), area_of(weight), grad->sizes[0],
				   weight->sizes[0], weight->sizes[1]);
	/* a convolution of one with the other, whose image is the weight */
	if (grad_weight)
		*flops = saturate__sum(*flops, convolved(area_of(grad_weight), area_of(transposed ? in : grad),
							 in->sizes[1], grad->sizes[1], in->sizes[0]));
	return true;
}

/*
 * Query, key and value: batch, heads, length, size of a head. Keys may have fewer heads than the query: then several of
 * the query's heads use one of the keys'.
 */
static bool attention_sizes(const struct tensors *t, u32 first, const u64 **query, const u64 **key, const u64 **value)
{
	*query = sizes_of(t, first, 4);
	*key = sizes_of(t, first + 1, 4);
	*value = sizes_of(t, first + 2, 4);
	return *query && *key && *value;
}

/* The scores, query times key, and their product with the value */
static bool attention(const struct tensors *t, u32 first, u64 *flops)
{
	const u64 *q, *k, *v;

	if (!attention_sizes(t, first, &q, &k, &v))
		return false;
	*flops = times(times(q[0], q[1]), saturate__sum(product_of(q[2], q[3], k[2]), product_of(q[2], k[2], v[3])));
	return true;
}

/* The scores again; the gradients of scores and value; those of query and key. The first argument is the gradient. */
static bool attention_backward(const struct tensors *t, u32 first, u64 *flops)
{
	const u64 *q, *k, *v;

	if (!attention_sizes(t, first + 1, &q, &k, &v))
		return false;
	*flops = times(times(q[0], q[1]),
		       saturate__sum(times(3, product_of(q[2], q[3], k[2])), times(2, product_of(q[2], k[2], v[3]))));
	return true;
}

/* Sorted by name */
static const struct {
	const char *name;
	formula count;
	u32 first; /* number of the argument that the formula begins with */
} formulas[] = {
	{ "aten::_addmm_activation", matrices, 1 },
	{ "aten::_convolution", convolution, 0 },
	{ "aten::_int_mm", matrices, 0 },
	{ "aten::_scaled_dot_product_cudnn_attention", attention, 0 },
	{ "aten::_scaled_dot_product_cudnn_attention_backward", attention_backward, 0 },
	{ "aten::_scaled_dot_product_efficient_attention", attention, 0 },
	{ "aten::_scaled_dot_product_efficient_attention_backward", attention_backward, 0 },
	{ "aten::_scaled_dot_product_flash_attention", attention, 0 },
	{ "aten::_scaled_dot_product_flash_attention_backward", attention_backward, 0 },
	{ "aten::_scaled_dot_product_flash_attention_for_cpu", attention, 0 },
	{ "aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, 0 },
	{ "aten::_scaled_dot_product_fused_attention_overrideable", attention, 0 },
	{ "aten::_scaled_dot_product_fused_attention_overrideable_backward", attention_backward, 0 },
	{ "aten::_scaled_mm", matrices, 0 },
	{ "aten::add", elements, 0 },
	{ "aten::addmm", matrices, 1 },
	{ "aten::addmm_", matrices, 1 },
	{ "aten::baddbmm", batches, 1 },
	{ "aten::baddbmm_", batches, 1 },
	{ "aten::bmm", batches, 0 },
	{ "aten::convolution", convolution, 0 },
	{ "aten::convolution_backward", convolution_backward, 0 },
	{ "aten::convolution_backward_overrideable", convolution_backward, 0 },
	{ "aten::convolution_overrideable", convolution, 0 },
	{ "aten::mm", matrices, 0 },
	{ "aten::mul", elements, 0 },
};

static int compare(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

u32 torch_flops__formula(const char *name)
{
	const char *const *found = bsearch(name, formulas, ARRAY_LEN(formulas), sizeof(*formulas), compare);

	return found ? (u32)((const char *)found - (const char *)formulas) / sizeof(*formulas) + 1 : 0;
}

bool torch_flops__count(u32 formula, const struct torch_tensor *list, u32 n, u64 *flops)
{
	const struct tensors t = { list, n };

	return formulas[formula - 1].count(&t, formulas[formula - 1].first, flops);
}
