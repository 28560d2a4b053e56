// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dnn_calls LIBCUDNN [null]: prints "ready", and at a line on stdin requests convolutions by the older functions and by
 * graphs, and products of matrices by graphs. Prints for each call its function, result and floating-point operations,
 * which are counted one by one. null: with the handle NULL, which the real library refuses; else with 0x4a, which the
 * double accepts.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "dnn_api.h"

static void *library;
static char memory[4096];
#define P ((void *)memory)
static cudnnHandle_t handle_of_all = (void *)0x4a;
#define H handle_of_all

#define USE(function, ...) (((__typeof__(&function))dlsym(library, #function))(__VA_ARGS__))
#define CALL(flop, function, ...)                                                                \
	do {                                                                                     \
		int ret = USE(function, __VA_ARGS__);                                            \
		printf("%s %d %llu\n", #function, ret, ret ? 0ULL : (unsigned long long)(flop)); \
	} while (0)

/* Convolves images of n x c x h x w with k filters of c / groups x r x s, without padding. */
struct problem {
	int n, c, h, w, k, r, s, stride, groups;
};

static int out(int size, int filter, int stride)
{
	return (size - filter) / stride + 1;
}

static unsigned long long count(const struct problem *p)
{
	unsigned long long done = 0;

	for (int image = 0; image < p->n; image++)
		for (int k = 0; k < p->k; k++)
			for (int i = 0; i + p->r <= p->h; i += p->stride)
				for (int j = 0; j + p->s <= p->w; j += p->stride)
					for (int c = 0; c < p->c / p->groups; c++)
						for (int point = 0; point < p->r * p->s; point++)
							done += 2;
	return done;
}

static void call_older(void)
{
	static const struct problem a = { 2, 3, 8, 9, 4, 3, 2, 1, 1 }, b = { 1, 6, 10, 10, 8, 3, 3, 2, 2 };
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	int sizes[] = { b.n, b.c, b.h, b.w }, filter[] = { b.k, b.c / b.groups, b.r, b.s };
	int result[] = { b.n, b.k, out(b.h, b.r, b.stride), out(b.w, b.s, b.stride) }, strides[] = { 1, 1, 1, 1 };
	size_t bytes;

	USE(cudnnCreateTensorDescriptor, &x);
	USE(cudnnCreateTensorDescriptor, &y);
	USE(cudnnCreateFilterDescriptor, &w);
	USE(cudnnSetTensor4dDescriptor, x, 0, 0, a.n, a.c, a.h, a.w);
	USE(cudnnSetFilter4dDescriptor, w, 0, 0, a.k, a.c, a.r, a.s);
	USE(cudnnSetTensor4dDescriptorEx, y, 0, a.n, a.k, out(a.h, a.r, 1), out(a.w, a.s, 1), 1, 1, 1, 1);
	USE(cudnnGetConvolutionForwardWorkspaceSize, H, x, w, P, y, 0, &bytes);
	CALL(count(&a), cudnnConvolutionForward, H, P, x, P, w, P, P, 0, P, 0, P, y, P);
	CALL(count(&a), cudnnConvolutionBiasActivationForward, H, P, x, P, w, P, P, 0, P, 0, P, y, P, y, P, P, y, P);
	CALL(count(&a), cudnnConvolutionBackwardData, H, P, w, P, y, P, P, 0, P, 0, P, x, P);
	CALL(count(&a), cudnnConvolutionBackwardFilter, H, P, x, P, y, P, P, 0, P, 0, P, w, P);
	CALL(0, cudnnSoftmaxForward, H, 0, 0, P, x, P, P, x, P);
	CALL(0, cudnnConvolutionForward, H ? (void *)0xbad : NULL, P, x, P, w, P, P, 0, P, 0, P, y, P);
	/* the same descriptors with other sizes */
	USE(cudnnSetTensorNdDescriptor, x, 2, 4, sizes, strides);
	USE(cudnnSetFilterNdDescriptor, w, 2, 0, 4, filter);
	USE(cudnnSetTensorNdDescriptorEx, y, 0, 2, 4, result);
	CALL(count(&b), cudnnConvolutionForward, H, P, x, P, w, P, P, 0, P, 0, P, y, P);
}

enum { /* cudnnBackendDescriptorType_t and cudnnBackendAttributeType_t */
       ENGINE = 2,
       ENGINE_CONFIGURATION = 3,
       HEURISTICS = 4,
       PLAN = 5,
       FORWARD = 10,
       BACKWARD_FILTER = 11,
       BACKWARD_DATA = 12,
       GRAPH = 15,
       VARIANTS = 16,
       TENSOR = 17,
       MATMUL = 19,
       TYPE_INT64 = 3,
       TYPE_DATA = 1,
       TYPE_DESCRIPTOR = 15,
};

static cudnnBackendDescriptor_t create(int type)
{
	cudnnBackendDescriptor_t d;

	USE(cudnnBackendCreateDescriptor, type, &d);
	return d;
}

static void set(cudnnBackendDescriptor_t d, int attribute, cudnnBackendDescriptor_t value)
{
	USE(cudnnBackendSetAttribute, d, attribute, TYPE_DESCRIPTOR, 1, &value);
}

static cudnnBackendDescriptor_t tensor(int type, int n, const int64_t *sizes)
{
	cudnnBackendDescriptor_t d = create(TENSOR);

	USE(cudnnBackendSetAttribute, d, 901, TYPE_DATA, 1, &type);
	USE(cudnnBackendSetAttribute, d, 902, TYPE_INT64, n, sizes);
	USE(cudnnBackendSetAttribute, d, 903, TYPE_INT64, n, sizes);
	return d;
}

/* An operation with three tensors, whose attributes are those */
static cudnnBackendDescriptor_t operation(int type, const int attributes[3], cudnnBackendDescriptor_t parts[3])
{
	cudnnBackendDescriptor_t d = create(type);

	for (int i = 0; i < 3; i++)
		set(d, attributes[i], parts[i]);
	return d;
}

/* A plan for a graph: by an engine, or by one of the configurations that heuristics found */
static cudnnBackendDescriptor_t plan_of(cudnnBackendDescriptor_t *operations, int n, int by_heuristics)
{
	cudnnBackendDescriptor_t graph = create(GRAPH), plan = create(PLAN), found[3];

	USE(cudnnBackendSetAttribute, graph, 801, TYPE_DESCRIPTOR, n, operations);
	for (int i = 0; i < 3; i++)
		found[i] = create(ENGINE_CONFIGURATION);
	if (by_heuristics) {
		cudnnBackendDescriptor_t heuristics = create(HEURISTICS);
		int64_t got;

		set(heuristics, 201, graph);
		USE(cudnnBackendGetAttribute, heuristics, 202, TYPE_DESCRIPTOR, 3, &got, found);
		USE(cudnnBackendDestroyDescriptor, heuristics);
	} else {
		cudnnBackendDescriptor_t engine = create(ENGINE);

		set(engine, 1300, graph);
		set(found[2], 300, engine);
	}
	set(plan, 401, found[2]);
	USE(cudnnBackendDestroyDescriptor, graph);
	for (int i = 0; i < n; i++)
		USE(cudnnBackendDestroyDescriptor, operations[i]);
	return plan;
}

static void call_graphs(void)
{
	static const struct problem p = { 2, 3, 8, 9, 4, 3, 2, 1, 1 };
	const int64_t x[] = { p.n, p.c, p.h, p.w }, w[] = { p.k, p.c, p.r, p.s },
		      y[] = { p.n, p.k, p.h - p.r + 1, p.w - p.s + 1 };
	const int64_t a[] = { 2, 3, 5, 7 }, b[] = { 2, 3, 7, 4 }, c[] = { 2, 3, 5, 4 };
	cudnnBackendDescriptor_t convolved[] = { tensor(9, 4, w), tensor(9, 4, x), tensor(9, 4, y) };
	cudnnBackendDescriptor_t multiplied[] = { tensor(2, 4, a), tensor(2, 4, b), tensor(2, 4, c) };
	cudnnBackendDescriptor_t list[] = {
		operation(FORWARD, (int[]){ 703, 704, 705 }, convolved),
		operation(BACKWARD_DATA, (int[]){ 709, 710, 711 }, convolved),
		operation(BACKWARD_FILTER, (int[]){ 715, 716, 717 }, convolved),
		operation(MATMUL, (int[]){ 1520, 1521, 1522 }, multiplied),
	};
	unsigned long long products = 2 * 2 * 3 * 5 * 7 * 4;
	cudnnBackendDescriptor_t plans[5];

	plans[0] = plan_of(&list[0], 1, 1);
	plans[1] = plan_of(&list[1], 1, 0);
	plans[2] = plan_of(&list[2], 1, 1);
	plans[3] = plan_of(&list[3], 1, 0);
	/* one graph with two operations */
	list[0] = operation(FORWARD, (int[]){ 703, 704, 705 }, convolved);
	list[1] = operation(MATMUL, (int[]){ 1520, 1521, 1522 }, multiplied);
	plans[4] = plan_of(list, 2, 1);
	for (int i = 0; i < 5; i++) {
		cudnnBackendDescriptor_t variants = create(VARIANTS);

		USE(cudnnBackendSetAttribute, variants, 1003, 6, 1, P);
		CALL(0, cudnnBackendFinalize, variants);
		CALL(i == 3 ? products :
		     i == 4 ? products + count(&p) :
			      count(&p),
		     cudnnBackendExecute, H, plans[i], variants);
		USE(cudnnBackendDestroyDescriptor, variants);
	}
}

int main(int argc, char **argv)
{
	char line[16];

	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (argc > 2)
		H = NULL;
	call_older();
	call_graphs();
	return 0;
}
