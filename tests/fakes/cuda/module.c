// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Modules of the driver's double: of a PTX text the names behind `.entry`, and for how long each runs:
 * a line "simulated: ns N", or "simulated: ns from parameter N" (of 64 bits), before the next entry.
 */
#define _GNU_SOURCE
#include "device.h"

#include <cuda.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NS 5000 /* of a kernel that does not say */

CUresult fake__add_kernel_node(CUgraph graph, const struct fake_kernel *k, CUgraphNode *out);
CUresult fake__add_set_node(CUgraph graph, size_t bytes, CUgraphNode *out);

struct module {
	struct fake_kernel *kernels;
	uint32_t n;
};

/* The hint may stand anywhere before `end`. */
static void read_hint(struct fake_kernel *k, const char *text, const char *end)
{
	const char *hint = strstr(text, "simulated: ns ");
	unsigned long n;

	k->ns = KERNEL_NS;
	if (!hint || hint > end)
		return;
	if (sscanf(hint, "simulated: ns from parameter %lu", &n) == 1)
		k->ns_parameter = n + 1;
	else if (sscanf(hint, "simulated: ns %lu", &n) == 1)
		k->ns = n;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	const char *at = image, *next;
	struct module *m;

	if (!strstr(at, ".version") || !strstr(at, ".entry"))
		return CUDA_ERROR_INVALID_PTX;
	m = calloc(1, sizeof(*m));
	for (at = strstr(at, ".entry"); at; at = next) {
		size_t len = 0;
		struct fake_kernel *k;

		at += strlen(".entry");
		at += strspn(at, " \t\n");
		next = strstr(at, ".entry");
		while (is_name(at[len]))
			len++;
		m->kernels = realloc(m->kernels, (m->n + 1) * sizeof(*m->kernels));
		k = &m->kernels[m->n++];
		memset(k, 0, sizeof(*k));
		/* for as long as the process runs: records point to it */
		k->name = strndup(at, len);
		read_hint(k, at, next ? next : at + strlen(at));
	}
	*out = (CUmodule)m;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *options, void **values)
{
	return cuModuleLoadData(out, image);
}

/* Its functions stay: what was launched may not have run yet. */
CUresult cuModuleUnload(CUmodule module)
{
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
	struct module *m = (struct module *)module;

	for (uint32_t i = 0; i < m->n; i++)
		if (!strcmp(m->kernels[i].name, name)) {
			*out = (CUfunction)&m->kernels[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

uint64_t kernel__ns(const struct fake_kernel *k, void **parameters)
{
	return k->ns_parameter && parameters ? *(uint64_t *)parameters[k->ns_parameter - 1] : k->ns;
}

/* What it is launched with says nothing that the double needs. */
CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
				 const CUDA_KERNEL_NODE_PARAMS *params)
{
	return fake__add_kernel_node(graph, (const struct fake_kernel *)params->func, out);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
			      const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	return fake__add_set_node(graph, params->width * params->height * params->elementSize, out);
}
