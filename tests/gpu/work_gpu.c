// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "work.h"
#include "kernels.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PTX_BYTES  8192
#define SWITCH_NS  30000000000ULL
#define SETTLED_MS 400

/* A machine code that was made beforehand, where the driver has no compiler. */
static bool load_file(struct gpu *g, const char *path)
{
	static char image[1 << 20];
	FILE *f = path ? fopen(path, "rb") : NULL;
	size_t n = f ? fread(image, 1, sizeof(image), f) : 0;

	if (f)
		fclose(f);
	return n && n < sizeof(image) && !cu.module_load(&g->module, image, 0, NULL, NULL);
}

void gpu__load(struct gpu *g)
{
	char log[400] = "", text[PTX_BYTES];
	int options[] = { CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	cu_result r = 1;

	for (size_t i = 0; r && i < sizeof(kernel_targets) / sizeof(kernel_targets[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", kernel_targets[i], kernel_text);
		values[1] = (void *)sizeof(log);
		r = cu.module_load(&g->module, text, 2, options, values);
		if (r && log[0])
			truth__fact_text("jit", log);
	}
	if (r && load_file(g, getenv("WORK_CUBIN")))
		r = 0;
	if (r)
		driver__failed("the kernels' PTX can't be loaded", r);
	MUST(cu.module_function(&g->add, g->module, VECTOR_ADD));
	MUST(cu.module_function(&g->spin, g->module, SPIN));
	MUST(cu.module_function(&g->empty, g->module, EMPTY));
}

void gpu__open(struct gpu *g)
{
	int n = 0, version = 0, khz = 0;
	char name[256] = "";

	MUST(cu.init(0));
	MUST(cu.driver_version(&version));
	MUST(cu.device_count(&n));
	MUST(cu.device_get(&g->device, 0));
	MUST(cu.device_name(name, sizeof(name), g->device));
	cu.device_attribute(&khz, CU_ATTRIBUTE_CLOCK_RATE, g->device);
	g->khz = khz > 0 ? khz : 1500000;
	g->simulated = !strcmp(name, "Simulated GPU");
	MUST(cu.primary_retain(&g->context, g->device));
	MUST(cu.context_set(g->context));
	truth__fact_text("gpu", name);
	truth__fact_number("gpus", n);
	truth__fact_number("driver_cuda", version);
	truth__fact_number("clock_khz", khz);
	gpu__load(g);
}

uint64_t gpu__cycles(const struct gpu *g, uint64_t ns)
{
	return ns * g->khz / 1000000;
}

cu_address op__alloc(size_t bytes)
{
	struct op *o = truth__begin(OP_ALLOC, 0);

	o->bytes = bytes;
	MUST(cu.alloc(&o->address, bytes));
	truth__end(o);
	return o->address;
}

void op__free(cu_address address)
{
	struct op *o = truth__begin(OP_FREE, 0);

	o->address = address;
	MUST(cu.free(address));
	truth__end(o);
}

void lane__open(struct lane *l, const struct gpu *g, uint32_t number)
{
	l->gpu = g;
	l->number = number;
	MUST(cu.stream_create(&l->stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++)
		l->memory[i] = op__alloc(LANE_BYTES);
	MUST(cu.alloc_host((void **)&l->pinned, LANE_BYTES));
	l->pageable = malloc(LANE_BYTES);
	for (size_t i = 0; i < LANE_BYTES / sizeof(float); i++)
		l->pinned[i] = l->pageable[i] = i;
}

void lane__close(struct lane *l)
{
	for (int i = 0; i < 3; i++)
		op__free(l->memory[i]);
	MUST(cu.stream_destroy(l->stream));
}

static struct op *launch(struct lane *l, const char *name, cu_function f, uint32_t grid, uint32_t block,
			 void **parameters)
{
	struct op *o = truth__begin(OP_KERNEL, l->number);

	o->name = name;
	o->grid = grid;
	o->block = block;
	MUST(cu.launch(f, grid, 1, 1, block, 1, 1, 0, l->stream, parameters, NULL));
	truth__end(o);
	return o;
}

struct op *lane__add(struct lane *l)
{
	uint32_t n = ADD_N;
	void *parameters[] = { &l->memory[0], &l->memory[1], &l->memory[2], &n };

	return launch(l, VECTOR_ADD, l->gpu->add, ADD_N / 128, 128, parameters);
}

struct op *lane__empty(struct lane *l)
{
	return launch(l, EMPTY, l->gpu->empty, 2, 64, NULL);
}

struct op *lane__spin(struct lane *l, uint64_t ns, cu_address stamp)
{
	uint64_t cycles = gpu__cycles(l->gpu, ns);
	void *parameters[] = { &cycles, &stamp };

	return launch(l, SPIN, l->gpu->spin, 1, 1, parameters);
}

struct op *lane__copy(struct lane *l, uint32_t kind, size_t bytes, bool pinned, bool asynchronous)
{
	struct op *o = truth__begin(OP_COPY, asynchronous ? l->number : 0);
	float *host = (pinned ? l->pinned : l->pageable) + (kind == 2 ? LANE_RESULT : 0);

	o->kind = kind;
	o->bytes = bytes;
	if (kind == 1)
		MUST(asynchronous ? cu.htod_async(l->memory[0], host, bytes, l->stream) :
				    cu.htod(l->memory[0], host, bytes));
	else if (kind == 2)
		MUST(asynchronous ? cu.dtoh_async(host, l->memory[2], bytes, l->stream) :
				    cu.dtoh(host, l->memory[2], bytes));
	else
		MUST(asynchronous ? cu.dtod_async(l->memory[1], l->memory[0], bytes, l->stream) :
				    cu.dtod(l->memory[1], l->memory[0], bytes));
	truth__end(o);
	return o;
}

struct op *lane__set(struct lane *l, unsigned char value, size_t bytes)
{
	struct op *o = truth__begin(OP_SET, l->number);

	o->bytes = bytes;
	MUST(cu.set8_async(l->memory[2], value, bytes, l->stream));
	truth__end(o);
	return o;
}

void lane__rest(struct lane *l, int n)
{
	struct op *o;

	if (cu.dtod)
		lane__copy(l, 8, 8192 + n, false, false);
	if (cu.set32_async) {
		o = truth__begin(OP_SET, l->number);
		o->bytes = 4 * (512 + n);
		MUST(cu.set32_async(l->memory[1], n, 512 + n, l->stream));
		truth__end(o);
	}
	if (cu.set8) {
		o = truth__begin(OP_SET, 0);
		o->bytes = 333 + n;
		MUST(cu.set8(l->memory[1], n, 333 + n));
		truth__end(o);
	}
}

void lane__wait(struct lane *l)
{
	struct op *o = truth__begin(OP_SYNC, l->number);

	o->kind = 3;
	MUST(cu.stream_synchronize(l->stream));
	truth__end(o);
}

void gpu__wait(void)
{
	struct op *o = truth__begin(OP_SYNC, 0);

	o->kind = 4;
	MUST(cu.context_synchronize());
	truth__end(o);
}

static long long told_so_far(void)
{
	const char *path = getenv("SHIM_OUT");
	struct stat st;

	return path && !stat(path, &st) ? (long long)st.st_size : -1;
}

uint64_t shim__switch(bool on)
{
	uint64_t began = truth__now(), took = 0;
	long long before = told_so_far(), size = before, last;
	int quiet = 0;

	if (before < 0)
		return 0;
	raise(on ? SIGUSR1 : SIGUSR2);
	/* while it is off its words come at once; while it is on the last of them are what ends a silence */
	for (; truth__now() < began + SWITCH_NS && quiet < (on ? 100 : SETTLED_MS); usleep(1000)) {
		last = size;
		size = told_so_far();
		if (size != last)
			took = truth__now() - began;
		quiet = size == last && size != before ? quiet + 1 : 0;
	}
	truth__fact_number(on ? "switched_on_ns" : "switched_off_ns", took);
	return took;
}
