// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Uses CUPTI while a tracer asks for it. CUPTI allows one subscription per process, and expects every client to
 * subscribe, even one that only uses activity records: buffers go to the client that registered last, so two clients
 * would take each other's. If CUPTI is in use, the shim reports by whom and leaves it alone. It unsubscribes as soon
 * as no tracer asks.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SAMPLE_NS     50000000 /* between samples of the clock, while there are times to convert */
#define FUNCTIONS_MAX 2000 /* CUDA 13.5: 560 of libcudart, 860 of libcuda */

struct kind_of_group {
	uint8_t group, kind;
};

/* Records that describe devices, contexts and streams are enabled with any group. */
static const struct kind_of_group kinds[] = {
	{ SHIM_KERNELS, KIND_CONCURRENT_KERNEL },
	{ SHIM_COPIES, KIND_MEMCPY },
	{ SHIM_COPIES, KIND_MEMCPY2 },
	{ SHIM_COPIES, KIND_MEMSET },
	{ SHIM_SYNC, KIND_SYNCHRONIZATION },
	{ SHIM_MEMORY, KIND_MEMORY2 },
	{ SHIM_MEMORY, KIND_MEMORY_POOL },
	{ SHIM_GRAPHS, KIND_GRAPH_TRACE },
};
static const uint8_t describing[] = { KIND_DEVICE, KIND_CONTEXT, KIND_STREAM };

/* From, to */
struct range {
	uint16_t first, last;
};

/* CUPTI_DRIVER_TRACE_CBID_... of cupti_driver_cbid.h, CUDA 13.5: they are never renumbered */
static const struct range driver_launches[] = {
	{ 115, 117 }, { 307, 307 }, { 442, 442 }, { 477, 478 }, { 480, 480 }, { 514, 515 }, { 652, 653 },
};
/* All cuMemcpy* and cuMemset*, which relate copies to their threads as launches do for kernels */
static const struct range driver_copies[] = {
	{ 216, 216 }, { 218, 218 }, { 220, 220 }, { 222, 222 }, { 224, 224 }, { 226, 226 }, { 249, 254 }, { 276, 293 },
	{ 305, 306 }, { 318, 321 }, { 397, 416 }, { 418, 433 }, { 776, 779 }, { 796, 799 }, { 837, 840 },
};
/* CUPTI_RUNTIME_TRACE_CBID_... of cupti_runtime_cbid.h, CUDA 13.5 */
static const struct range runtime_launches[] = {
	{ 13, 13 }, { 211, 211 }, { 213, 214 }, { 269, 270 }, { 272, 272 }, { 311, 312 }, { 430, 431 }, { 505, 506 },
};
static const struct range runtime_copies[] = {
	{ 31, 52 },   { 142, 145 }, { 160, 163 }, { 215, 236 }, { 243, 246 },
	{ 249, 250 }, { 482, 485 }, { 509, 512 }, { 554, 557 },
};

static uint64_t host_clock(void *arg)
{
	return shim__now();
}

static uint64_t device_clock(void *arg)
{
	struct activities *a = arg;
	uint64_t t = 0;

	a->clock_result = a->cupti.get_timestamp(&t);
	return a->clock_result ? 0 : t;
}

static bool sample_clock(struct activities *a)
{
	const struct clock_source source = { host_clock, device_clock, a };
	const struct clock_sample *s;
	struct shim_clock *c;

	if (!clock__sample(&a->clock, &source))
		return false;
	s = clock__last(&a->clock);
	c = out__record(SHIM_CLOCK, sizeof(*c), 0, s->host, 0);
	*c = (struct shim_clock){
		.device_time = s->device,
		.error = s->error,
		.drift_ppb = s->drift,
		.reads = s->reads,
		.restarted = s->restarted,
	};
	return true;
}

/* For the callback that runs out of buffers, in a thread of the target. */
static const struct cupti *counting;

static uint64_t count_records(uint8_t *buffer, size_t valid)
{
	struct cupti_activity *a = NULL;
	uint64_t n = 0;
	size_t lost;

	while (counting && records__next(counting, buffer, valid, &a, &lost) > 0)
		n++;
	return n;
}

static void explain(struct activities *a, const char *what, uint32_t result)
{
	const char *text = NULL;

	/* one reason is enough, and the first is most likely the cause of the others */
	if (a->refused++)
		return;
	if (a->cupti.result_string && a->cupti.result_string(result, &text))
		text = NULL;
	snprintf(a->why, sizeof(a->why), "%s: CUPTI says %s (%u)", what, text ? text : "an error", result);
}

/* Callbacks are never enabled. */
static void on_callback(void *user, int domain, uint32_t id, const void *data)
{
}

static int subscribe(struct activities *a)
{
	char other[128] = "";
	struct cupti_subscriber_params params = {
		.size = sizeof(params),
		.name = "sonde",
		.other_name = other,
		.other_size = sizeof(other) - 1,
	};
	uint32_t result = CUPTI_INVALID_PARAMETER;

	if (a->cupti.subscribe_v2)
		result = a->cupti.subscribe_v2(&a->subscriber, on_callback, NULL, &params);
	if (result == CUPTI_INVALID_PARAMETER)
		result = a->cupti.subscribe(&a->subscriber, on_callback, NULL);
	if (!result)
		return 0;
	if (result != CUPTI_MULTIPLE_SUBSCRIBERS) {
		explain(a, "the GPU can't be traced", result);
		return -EIO;
	}
	snprintf(a->why, sizeof(a->why),
		 "another profiler%s%s has CUPTI's one subscription: there are no device times while it is there",
		 *other ? ", " : "", other);
	return -EBUSY;
}

/* Makes CUPTI use the kernel's thread ids. */
static void number_threads(struct activities *a)
{
	uint32_t result = CUPTI_INVALID_PARAMETER;

	if (a->cupti.set_thread_id_type && a->cupti.get_thread_id_type)
		result = a->cupti.get_thread_id_type(&a->thread_id_type);
	if (!result)
		result = a->cupti.set_thread_id_type(THREAD_ID_SYSTEM);
	a->no_threads = result;
	if (result)
		explain(a, "launches are not joined to threads", result);
}

int activities__start(struct activities *a)
{
	uint32_t result;
	int err;

	a->refused = 0;
	a->why[0] = '\0';
	err = cupti__find(&a->cupti, a->why, sizeof(a->why));
	if (!err)
		err = subscribe(a);
	if (err)
		return err;
	counting = &a->cupti;
	buffers__count_by(count_records);
	result = a->cupti.register_callbacks(buffers__requested, buffers__completed);
	if (result) {
		explain(a, "CUPTI takes no buffers", result);
		a->cupti.unsubscribe(a->subscriber);
		return -EIO;
	}
	memset(&a->clock, 0, sizeof(a->clock));
	/* times that can't be converted to the host's clock are useless */
	if (!sample_clock(a)) {
		explain(a, "CUPTI's clock can't be read", a->clock_result);
		a->cupti.unsubscribe(a->subscriber);
		return -EIO;
	}
	number_threads(a);
	a->enabled = 0;
	return 0;
}

static void switch_kind(struct activities *a, uint8_t kind, bool on)
{
	uint32_t result = CUPTI_INVALID_PARAMETER;

	char what[64];

	if (!on) {
		result = a->cupti.disable(kind);
		snprintf(what, sizeof(what), "activities of kind %u are still traced", kind);
		if (result)
			explain(a, what, result);
		return;
	}
	/* objects that existed before the tracer came are reported, too */
	if (a->cupti.enable_and_dump && (kind == KIND_DEVICE || kind == KIND_CONTEXT || kind == KIND_STREAM))
		result = a->cupti.enable_and_dump(kind);
	if (result)
		result = a->cupti.enable(kind);
	snprintf(what, sizeof(what), "activities of kind %u are not traced", kind);
	if (result)
		explain(a, what, result);
}

/* One of CUDA's two libraries: CUPTI switches the records of each function of it. */
struct library {
	uint8_t kind;
	uint16_t probe; /* a function that each CUPTI knows */
	uint32_t (*enable)(uint32_t function, uint8_t on);
	const struct range *launches, *copies;
	uint8_t n_launches, n_copies;
};

static bool is_in(const struct range *ranges, size_t n, uint32_t f)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ranges[i].first <= f && f <= ranges[i].last)
			return true;
	return false;
}

/*
 * If CUPTI is switched on when CUDA is in use already, it records single functions only if their whole kind was enabled
 * before (CUPTI 13.0.1). So the kind is enabled, and then all functions but the chosen ones are disabled. A function
 * that an older CUPTI does not know is refused, which is harmless.
 */
static bool switch_library(struct activities *a, const struct library *l, bool launching, bool copying)
{
	uint32_t f;

	if (!launching) {
		switch_kind(a, l->kind, false);
		return true;
	}
	/* never the whole kind: with all calls of CUDA tracing is expensive */
	if (!l->enable || l->enable(l->probe, true))
		return false;
	switch_kind(a, l->kind, true);
	for (f = 1; f <= FUNCTIONS_MAX; f++)
		l->enable(f, is_in(l->launches, l->n_launches, f) || (copying && is_in(l->copies, l->n_copies, f)));
	return true;
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void switch_calls(struct activities *a, bool launching, bool copying)
{
	const struct library libraries[] = {
		{ KIND_RUNTIME, 211, a->cupti.enable_runtime_api, runtime_launches, runtime_copies, N(runtime_launches),
		  N(runtime_copies) },
		{ KIND_DRIVER, 307, a->cupti.enable_driver_api, driver_launches, driver_copies, N(driver_launches),
		  N(driver_copies) },
	};
	bool all = true;
	size_t i;

	for (i = 0; i < N(libraries); i++)
		all &= switch_library(a, &libraries[i], launching, copying);
	if (!all && !a->refused++)
		snprintf(a->why, sizeof(a->why),
			 "this CUPTI can't trace single functions: launches are joined by time alone");
}

static bool has_group(uint32_t groups, enum shim_group group)
{
	return groups >> group & 1;
}

void activities__set(struct activities *a, uint32_t groups)
{
	uint32_t before = a->enabled;
	bool launching, calls;
	size_t i;

	/*
	 * With graphs as a whole CUPTI emits no records of their nodes. That must not be enabled when there may be
	 * graphs: CUPTI 13.0.1 crashes in the launch of one that was instantiated before.
	 */
	if (has_group(groups, SHIM_GRAPHS) && !a->in_init && !has_group(before, SHIM_GRAPHS))
		groups |= 1U << SHIM_NODES;
	if (has_group(groups, SHIM_NODES))
		groups = (groups & ~(1U << SHIM_GRAPHS)) | 1U << SHIM_KERNELS;
	if (groups == before)
		return;
	launching = has_group(groups, SHIM_CALLS);
	calls = has_group(groups ^ before, SHIM_CALLS) || (launching && has_group(groups ^ before, SHIM_COPIES));
	/*
	 * enabled before and disabled after what they launch: a call without its kernel does less harm than a kernel
	 * without its call
	 */
	if (calls && launching)
		switch_calls(a, true, has_group(groups, SHIM_COPIES));
	for (i = 0; i < sizeof(describing); i++)
		if (!before != !groups)
			switch_kind(a, describing[i], groups);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (has_group(groups ^ before, kinds[i].group))
			switch_kind(a, kinds[i].kind, has_group(groups, kinds[i].group));
	if (calls && !launching)
		switch_calls(a, false, false);
	a->enabled = groups;
}

static void report_dropped(uint64_t records, uint64_t bytes, uint32_t reason)
{
	struct shim_dropped *d;

	if (!records && !bytes)
		return;
	d = out__record(SHIM_DROPPED, sizeof(*d), 0, shim__now(), 0);
	*d = (struct shim_dropped){ .records = records, .bytes = bytes, .reason = reason };
}

/* Takes a sample if the last one is older than `age`: times after the last sample are extrapolated. */
static void follow_clock(struct activities *a, uint64_t age)
{
	const struct clock_sample *last = clock__last(&a->clock);

	if (last && age && shim__now() < last->host + age)
		return;
	if (!sample_clock(a))
		explain(a, "CUPTI's clock can't be read any more", a->clock_result);
}

void activities__flush(struct activities *a, bool forced)
{
	struct records r = { .cupti = &a->cupti, .clock = &a->clock, .no_threads = a->no_threads };
	uint32_t result = a->cupti.flush(forced ? FLUSH_FORCED : 0);
	uint64_t records, bytes;
	size_t valid, lost = 0;
	uint8_t *buffer;
	int n;

	if (result)
		explain(a, "CUPTI does not give back its buffers", result);
	buffer = buffers__take(&valid);
	/* after the flush, whose records are older than this sample */
	follow_clock(a, buffer ? 0 : CLOCK_EVERY);
	/*
	 * limited: a target that fills buffers as fast as they are emptied must not keep the shim from checking for
	 * requests
	 */
	for (n = 0; buffer; buffer = ++n < 2 * BUFFERS_MAX ? buffers__take(&valid) : NULL) {
		follow_clock(a, SAMPLE_NS);
		r.now = shim__now();
		records__convert(&r, buffer, valid);
		buffers__give_back(buffer);
	}
	if (buffers__discarded(&records, &bytes))
		report_dropped(records, bytes, 1);
	if (!a->cupti.dropped(NULL, 0, &lost))
		report_dropped(lost, 0, 2);
	report_dropped(r.n_invalid, r.invalid_bytes, 3);
	out__flush();
}

/* cuptiFinalize is not called: it is only safe inside of one of CUDA's own calls (docs/gpu.md). */
void activities__stop(struct activities *a)
{
	uint32_t result;

	/* earlier refusals have been reported */
	a->refused = 0;
	a->why[0] = '\0';
	activities__set(a, 0);
	activities__flush(a, true);
	if (!a->no_threads)
		a->cupti.set_thread_id_type(a->thread_id_type);
	result = a->cupti.unsubscribe(a->subscriber);
	if (result)
		explain(a, "CUPTI can't be left", result);
	buffers__release();
}
