// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "torch_lite.h"

#include "util/array.h"

#include <stdlib.h>
#include <string.h>

/* Names without namespace and overload, sorted. */
static const char *const left_out[] = {
	/* clang-format off */
	"_autocast_to_full_precision", "_autocast_to_reduced_precision", "_batch_norm_impl_index", "_convolution",
	"_has_compatible_shallow_copy_type", "_local_scalar_dense", "_nested_view_from_buffer", "_nnpack_available",
	"_reshape_alias", "_unsafe_view", "_version", "alias", "as_strided", "as_strided_", "batch_norm", "broadcast_to",
	"chunk", "conv1d", "conv2d", "conv3d", "cross_entropy_loss", "data", "detach", "detach_",
	"diagonal", "dropout", "empty", "empty_like", "empty_permuted", "empty_strided", "expand", "expand_as", "flatten",
	"group_norm", "instance_norm", "is_coalesced", "is_complex", "is_conj", "is_floating_point", "is_inference",
	"is_leaf", "is_neg", "is_nonzero", "is_pinned", "is_same_size", "is_signed", "is_zerotensor", "item",
	"layer_norm", "lift_fresh", "linear", "log_softmax", "matmul", "max_pool2d", "movedim", "narrow", "new_empty",
	"new_empty_strided", "nll_loss", "nll_loss2d", "nll_loss_nd", "output_nr", "permute", "pin_memory",
	"requires_grad_", "reshape", "reshape_as", "resize_", "resolve_conj", "resolve_neg", "result_type", "retain_grad",
	"retains_grad", "select", "set_", "set_data", "size", "slice", "softmax", "split", "split_with_sizes", "squeeze",
	"squeeze_", "stride", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride", "t", "t_", "tensor_split", "to",
	"transpose", "transpose_", "type_as", "unbind", "unflatten", "unsafe_chunk", "unsafe_split",
	"unsafe_split_with_sizes", "unsqueeze", "unsqueeze_", "view", "view_as", "view_as_complex", "view_as_real",
	/* clang-format on */
};

/* ATen/core/dispatch/ObservedOperators.cpp, those in namespace aten */
static const char *const unobserved[] = {
	"_version", "is_complex", "is_leaf", "output_nr", "size",
};

static int compare(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static bool is_in(const char *const *list, size_t n, const char *name)
{
	const char *base = strstr(name, "::");
	char text[64];
	size_t len;

	if (!base || strncmp(name, "aten::", 6))
		return false;
	base += 2;
	len = strcspn(base, ".");
	if (len >= sizeof(text))
		return false;
	memcpy(text, base, len);
	text[len] = '\0';
	return bsearch(text, list, n, sizeof(*list), compare);
}

bool torch_lite__leaves_out(const char *name)
{
	return is_in(left_out, ARRAY_LEN(left_out), name);
}

bool torch_lite__is_observed(const char *name)
{
	return !is_in(unobserved, ARRAY_LEN(unobserved), name);
}
