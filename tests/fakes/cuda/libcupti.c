// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CUPTI's double: one subscriber, kinds on and off, buffers asked for and given
 * back, its own clock. What has been reported to it waits until it has ended on the
 * device, then it is a record of NVIDIA's layout (cupti_records.c).
 */
#define _GNU_SOURCE
#include "cupti_double.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock; /* of what waits; taken with the machine's lock held, never the other way round */
	pthread_mutex_t buffers; /* before `lock` */
	CUpti_BuffersCallbackRequestFunc requested;
	CUpti_BuffersCallbackCompleteFunc completed;
	bool on[128];
	struct functions {
		bool on[1024];
		bool known; /* single functions are recorded: see enable_function() */
	} driver, runtime;
	bool subscribed;
	char holder[64];
	uint64_t lost, lost_told; /* records, by resets */
	bool stuck;
	uint32_t older_graphs; /* executable graphs that were made before graphs were traced as a whole */
	uint64_t called; /* of its functions, how often */
	struct fake_record *waiting;
	uint32_t n, max;
	uint8_t *buffer;
	size_t size, used;
} cupti = { .lock = PTHREAD_MUTEX_INITIALIZER, .buffers = PTHREAD_MUTEX_INITIALIZER };

static uint64_t began, loaded;

static uint64_t setting_of(const char *call, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s", call, what);
	return fake__setting("FAKE_CUPTI", key, 0);
}

/* Is this the shim's own thread? Which of its calls the program's threads make at the start depends on the machine. */
static bool is_shims(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return !strcmp(name, "sonde-cupti");
}

/* What a test wants of this call: its result, after a while or never. */
static CUptiResult injected(const char *call, uint64_t *number)
{
	static const char *settings;
	uint64_t ms, n = __atomic_add_fetch(number, 1, __ATOMIC_RELAXED);

	__atomic_add_fetch(&cupti.called, 1, __ATOMIC_RELAXED);
	/* quick where there is nothing to be done: it is called for each record */
	if (!settings)
		settings = getenv("FAKE_CUPTI") ? getenv("FAKE_CUPTI") : "";
	if (!strstr(settings, call))
		return CUPTI_SUCCESS;
	if (n < setting_of(call, "_after") || (setting_of(call, "_shim") && !is_shims()))
		return CUPTI_SUCCESS;
	ms = setting_of(call, "_ms");
	if (ms)
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
	while (setting_of(call, "_hang"))
		pause();
	return (CUptiResult)setting_of(call, "");
}

#define INJECT(call)                                        \
	do {                                                \
		static uint64_t number_;                    \
		CUptiResult r_ = injected(#call, &number_); \
		if (r_)                                     \
			return r_;                          \
	} while (0)

/* The device's clock at a moment: another zero, and it runs fast. */
uint64_t cupti__time(uint64_t host)
{
	static uint64_t ppm = ~0ULL;

	if (!host)
		return 0;
	if (ppm == ~0ULL)
		ppm = fake__setting("FAKE_CUPTI", "ppm", 0);
	return host + 1000000000000ULL + (int64_t)(host - began) / 1000000 * (int64_t)ppm +
	       (int64_t)(host - began) % 1000000 * (int64_t)ppm / 1000000;
}

/* Marks that CUPTI was called: a dormant shim does not. */
static void tell_calls(void)
{
	fake__note("cupti_calls", cupti.called);
}

static __attribute__((constructor)) void begin(void)
{
	atexit(tell_calls);
	loaded = fake__now();
	cupti.stuck = fake__setting("FAKE_CUPTI", "next_stuck", 0);
	/* all processes have the same clock */
	began = fake__now() / 3600000000000ULL * 3600000000000ULL;
}

/* Some reads take long, before or after the clock is read. */
static void delay(void)
{
	static uint32_t x = 1;
	uint64_t until, jitter = fake__setting("FAKE_CUPTI", "jitter_ns", 0);

	x = x * 1664525 + 1013904223;
	for (until = fake__now() + (jitter ? (x >> 8) % jitter : 0); jitter && fake__now() < until;)
		;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
	INJECT(version);
	*version = CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
	INJECT(timestamp);
	delay();
	*timestamp = cupti__time(fake__now());
	delay();
	return CUPTI_SUCCESS;
}

static bool is_taken(void)
{
	return fake__setting("FAKE_CUPTI", "taken", 0) ||
	       fake__now() - loaded < fake__setting("FAKE_CUPTI", "taken_ms", 0) * 1000000;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *subscriber, const char *name)
{
	INJECT(subscribe);
	if (is_taken()) {
		snprintf(cupti.holder, sizeof(cupti.holder), "Another Profiler 1.0");
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	}
	if (__atomic_exchange_n(&cupti.subscribed, true, __ATOMIC_SEQ_CST))
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	snprintf(cupti.holder, sizeof(cupti.holder), "%s", name);
	*subscriber = (CUpti_SubscriberHandle)&cupti;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user)
{
	return subscribe(subscriber, "another profiler");
}

#if CUPTI_API_VERSION >= 130000
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user,
			      CUpti_SubscriberParams *params)
{
	CUptiResult r;

	if (!params || params->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	r = subscribe(subscriber, params->subscriberName ? params->subscriberName : "");
	if (r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params->oldSubscriberName)
		snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", cupti.holder);
	return r;
}
#endif

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	INJECT(unsubscribe);
	if (subscriber != (CUpti_SubscriberHandle)&cupti)
		return CUPTI_ERROR_INVALID_PARAMETER;
	__atomic_store_n(&cupti.subscribed, false, __ATOMIC_SEQ_CST);
	return CUPTI_SUCCESS;
}

static bool is_recorded(const struct functions *f, uint32_t cbid)
{
	return f->known && cbid < 1024 && f->on[cbid];
}

/* Does a record of this go out? With graphs as a whole their nodes do not. */
static bool is_enabled(const struct fake_record *r)
{
	bool nodes = !cupti.on[CUPTI_ACTIVITY_KIND_GRAPH_TRACE];

	switch (r->op) {
	case FAKE_KERNEL:
		return (nodes || !r->graph) && cupti.on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL];
	case FAKE_COPY:
		return cupti.on[r->peer ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY];
	case FAKE_SET:
		return (nodes || !r->graph) && cupti.on[CUPTI_ACTIVITY_KIND_MEMSET];
	case FAKE_SYNC:
		return cupti.on[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION];
	case FAKE_GRAPH:
		return cupti.on[CUPTI_ACTIVITY_KIND_GRAPH_TRACE];
	case FAKE_MEMORY:
		return cupti.on[CUPTI_ACTIVITY_KIND_MEMORY2];
	case FAKE_CALL:
		/* within a call of libcudart, as seen with CUPTI 13.0.1, that call is recorded instead */
		if (r->nested && (cupti.runtime.known || cupti.on[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]))
			return false;
		return is_recorded(&cupti.driver, r->kind);
	case FAKE_RUNTIME_CALL:
		return is_recorded(&cupti.runtime, r->kind);
	case FAKE_DEVICE:
		return cupti.on[CUPTI_ACTIVITY_KIND_DEVICE];
	case FAKE_CONTEXT:
		return cupti.on[CUPTI_ACTIVITY_KIND_CONTEXT];
	case FAKE_STREAM:
		return cupti.on[CUPTI_ACTIVITY_KIND_STREAM];
	case FAKE_RESET:
	case FAKE_NOTE:
		break;
	}
	return false;
}

static bool keep(const struct fake_record *r)
{
	bool kept;

	/* as CUPTI 13.0.1 does */
	if (r->op == FAKE_GRAPH && cupti.on[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] && r->graph <= cupti.older_graphs)
		raise(SIGSEGV);
	pthread_mutex_lock(&cupti.lock);
	kept = is_enabled(r);
	if (kept && cupti.n == cupti.max) {
		cupti.max = cupti.max * 2 + 1024;
		cupti.waiting = realloc(cupti.waiting, cupti.max * sizeof(*cupti.waiting));
		if (!cupti.waiting)
			abort();
	}
	if (kept)
		cupti.waiting[cupti.n++] = *r;
	pthread_mutex_unlock(&cupti.lock);
	return kept;
}

/* CUPTI hands over what it has, or loses it. */
static void context_ends(void)
{
	if (!fake__setting("FAKE_CUPTI", "reset_loses", 0)) {
		cupti__sweep(false);
		return;
	}
	pthread_mutex_lock(&cupti.lock);
	cupti.lost += cupti.n;
	cupti.n = 0;
	pthread_mutex_unlock(&cupti.lock);
}

static bool tool(const struct fake_record *r)
{
	bool kept = keep(r);

	if (r->op == FAKE_RESET)
		context_ends();
	/* as CUPTI does: full buffers come from the target's threads too */
	if (kept && cupti.n > 4096)
		cupti__sweep(false);
	return kept;
}

static void give_back(void)
{
	if (cupti.buffer)
		cupti.completed(NULL, 0, cupti.buffer, cupti.size, cupti.used);
	cupti.buffer = NULL;
}

static void put(const struct fake_record *r, bool finished)
{
	struct cupti_record out;
	size_t max = 0, size = cupti__record(&out, r, finished);

	if (cupti.buffer && cupti.used + size > cupti.size)
		give_back();
	if (!cupti.buffer) {
		cupti.requested(&cupti.buffer, &cupti.size, &max);
		cupti.used = 0;
		/* CUPTI before CUDA 12.9 fares no better */
		if (!cupti.buffer || cupti.size < size)
			abort();
	}
	memcpy(cupti.buffer + cupti.used, &out, size);
	cupti.used += size;
}

/* Records of all that has ended; all: of the rest too. */
void cupti__sweep(bool all)
{
	uint64_t now = fake__now();
	struct fake_record *list;
	uint32_t i, n, left = 0;

	pthread_mutex_lock(&cupti.buffers);
	pthread_mutex_lock(&cupti.lock);
	list = cupti.waiting;
	n = cupti.n;
	cupti.waiting = NULL;
	cupti.n = cupti.max = 0;
	pthread_mutex_unlock(&cupti.lock);
	for (i = 0; i < n; i++) {
		if (all || list[i].end <= now)
			put(&list[i], list[i].end <= now);
		else
			list[left++] = list[i];
	}
	pthread_mutex_lock(&cupti.lock);
	/* what has come meanwhile is younger; the order of records means nothing */
	for (i = 0; i < left; i++) {
		if (cupti.n == cupti.max) {
			cupti.max = cupti.max * 2 + 1024;
			cupti.waiting = realloc(cupti.waiting, cupti.max * sizeof(*cupti.waiting));
		}
		cupti.waiting[cupti.n++] = list[i];
	}
	pthread_mutex_unlock(&cupti.lock);
	free(list);
	pthread_mutex_unlock(&cupti.buffers);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
					   CUpti_BuffersCallbackCompleteFunc completed)
{
	INJECT(register);
	cupti.requested = requested;
	cupti.completed = completed;
	return CUPTI_SUCCESS;
}

static struct functions *functions_of(CUpti_ActivityKind kind)
{
	return kind == CUPTI_ACTIVITY_KIND_DRIVER  ? &cupti.driver :
	       kind == CUPTI_ACTIVITY_KIND_RUNTIME ? &cupti.runtime :
						     NULL;
}

static void enable_functions(CUpti_ActivityKind kind, bool on)
{
	struct functions *f = functions_of(kind);

	if (!f)
		return;
	memset(f->on, on, sizeof(f->on));
	f->known = on;
}

static bool has_context;

static bool on_context(const struct fake_record *r)
{
	has_context = true;
	return false;
}

/*
 * As seen with CUPTI 13.0.1: a single function is recorded only if its kind was enabled before, or if CUDA has not
 * been initialized yet.
 */
static CUptiResult enable_function(struct functions *f, uint32_t cbid, bool on)
{
	if (cbid >= 1024)
		return CUPTI_ERROR_INVALID_PARAMETER;
	has_context = false;
	fake__dump(FAKE_CONTEXT, on_context);
	f->known |= on && !has_context;
	f->on[cbid] = on;
	return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_ActivityKind kind)
{
	if (kind >= 128 || !cupti.requested)
		return CUPTI_ERROR_INVALID_KIND;
	fake__set_tool(tool);
	if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
		cupti.older_graphs = fake__graphs();
	cupti.on[kind] = true;
	enable_functions(kind, true);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	INJECT(enable);
	return enable(kind);
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	CUptiResult r;

	INJECT(dump);
	r = enable(kind);
	if (!r && kind == CUPTI_ACTIVITY_KIND_DEVICE)
		fake__dump(FAKE_DEVICE, keep);
	if (!r && kind == CUPTI_ACTIVITY_KIND_CONTEXT)
		fake__dump(FAKE_CONTEXT, keep);
	if (!r && kind == CUPTI_ACTIVITY_KIND_STREAM)
		fake__dump(FAKE_STREAM, keep);
	return r;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	INJECT(disable);
	if (kind >= 128)
		return CUPTI_ERROR_INVALID_KIND;
	cupti.on[kind] = false;
	enable_functions(kind, false);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	INJECT(driver_api);
	return enable_function(&cupti.driver, cbid, enable);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	INJECT(runtime_api);
	return enable_function(&cupti.runtime, cbid, enable);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	INJECT(flush);
	if (!cupti.requested)
		return CUPTI_ERROR_INVALID_OPERATION;
	cupti__sweep(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	pthread_mutex_lock(&cupti.buffers);
	give_back();
	pthread_mutex_unlock(&cupti.buffers);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	uint8_t *at = *record ? (uint8_t *)*record + cupti__record_size((*record)->kind) : buffer;

	INJECT(next);
	/* it leads nowhere, for ever */
	if (cupti.stuck && *record)
		return CUPTI_SUCCESS;
	if (at >= buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)at;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
	uint64_t all = fake__setting("FAKE_CUPTI", "drop", 0);

	INJECT(dropped);
	pthread_mutex_lock(&cupti.lock);
	all += cupti.lost;
	*dropped = all - cupti.lost_told;
	cupti.lost_told = all;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	INJECT(get_thread);
	*type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	INJECT(set_thread);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
	INJECT(result_string);
	*text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR";
	return CUPTI_SUCCESS;
}
