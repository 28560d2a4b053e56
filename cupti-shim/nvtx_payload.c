// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NVTX's extensions for payloads and counters. A library that uses them has a list of functions for each extension,
 * which NVTX passes to the shim if it has loaded it. In a process that runs without a tool nothing distinguishes these
 * lists from other data, so they are not served there.
 */
#define _GNU_SOURCE
#include "nvtx.h"
#include "nvtx_schema.h"

#include "shim.h"

#include <string.h>

#define PAYLOADS_MAX 4
#define COUNTERS_MAX 512
#define TEXT_BYTES   512

SHIM_EXPORT int InitializeInjectionNvtxExtension(void *info);

/* Records the text of a payload, for the event of this thread that has this time. */
static void record(const struct nvtx_payload_data *p, uint64_t time)
{
	struct shim_nvtx_payload body = { 0 };
	char text[TEXT_BYTES];
	uint64_t stated = 0, schema;

	nvtx_schema__write(p->schema, p->data, p->size, text, sizeof(text), &schema, &stated);
	body.schema = schema;
	if (!time || (!*text && !body.schema))
		return;
	nvtx__use(body.schema);
	lane__record_text_at(LANE_NVTX, NVTX_PAYLOAD, time, &body, sizeof(body), text, strlen(text));
}

void nvtx__payload(const struct nvtx_payload_data *p, int n, uint64_t time)
{
	for (int i = 0; p && i < n && i < PAYLOADS_MAX; i++)
		record(&p[i], time);
}

/* The name of an event that has only payloads: the message in one of them, else the name of its schema. */
static struct shim_nvtx_attributes attributes(uint64_t domain, const struct nvtx_payload_data *p, size_t n)
{
	struct shim_nvtx_attributes a = { .domain = domain, .payload_kind = n ? NVTX_STRUCT : NVTX_NO_PAYLOAD };
	uint64_t name = 0, message = 0;
	char text[TEXT_BYTES];

	for (size_t i = 0; p && i < n && i < PAYLOADS_MAX && !message; i++)
		nvtx_schema__write(p[i].schema, p[i].data, p[i].size, text, sizeof(text), &name, &message);
	a.name = message ? message : name;
	return a;
}

static uint64_t register_schema(uint64_t domain, const struct nvtx_schema_attributes *a)
{
	return nvtx_schema__register(a);
}

static uint64_t register_enum(uint64_t domain, const struct nvtx_enum_attributes *a)
{
	return nvtx_schema__register_enum(a);
}

static void mark_payload(uint64_t domain, const struct nvtx_payload_data *p, size_t n)
{
	struct shim_nvtx_attributes a;

	if (!nvtx_records)
		return;
	a = attributes(domain, p, n);
	nvtx__payload(p, (int)n, nvtx__mark(&a));
}

static int push_payload(uint64_t domain, const struct nvtx_payload_data *p, size_t n)
{
	struct shim_nvtx_attributes a = attributes(domain, p, n);
	int level;

	nvtx__payload(p, (int)n, nvtx__push(&a, &level));
	return level;
}

/* What is known at the end is recorded as a payload of that time. */
static int pop_payload(uint64_t domain, const struct nvtx_payload_data *p, size_t n)
{
	if (nvtx_records)
		nvtx__payload(p, (int)n, shim__now());
	return nvtx__pop(domain);
}

static uint64_t start_payload(uint64_t domain, const struct nvtx_payload_data *p, size_t n)
{
	struct shim_nvtx_attributes a = attributes(domain, p, n);
	uint64_t time, id = nvtx__start(&a, &time);

	nvtx__payload(p, (int)n, time);
	return id;
}

static void end_payload(uint64_t domain, uint64_t id, const struct nvtx_payload_data *p, size_t n)
{
	if (nvtx_records)
		nvtx__payload(p, (int)n, shim__now());
	nvtx__end(id);
}

static uint8_t is_enabled(uint64_t domain)
{
	return 1;
}

static int64_t timestamp(void)
{
	return (int64_t)shim__now();
}

static uint64_t register_scope(uint64_t domain, const void *a)
{
	return 1ULL << 32;
}

/* nvtxCounterAttr_v1 */
struct counter_attributes {
	size_t size;
	uint64_t schema;
	const char *name, *description;
	uint64_t scope;
	const void *semantics;
	uint64_t id;
};

static struct {
	struct {
		uint64_t id, name, schema;
	} list[COUNTERS_MAX];
	uint32_t n;
} counters;

static uint64_t register_counter(uint64_t domain, const struct counter_attributes *a)
{
	uint32_t i;

	if (!a || a->size < sizeof(*a))
		return 0;
	i = __atomic_fetch_add(&counters.n, 1, __ATOMIC_ACQ_REL);
	if (i >= COUNTERS_MAX) {
		__atomic_store_n(&counters.n, COUNTERS_MAX, __ATOMIC_RELEASE);
		return 0;
	}
	counters.list[i].name = nvtx__text(a->name);
	counters.list[i].schema = a->schema;
	__atomic_store_n(&counters.list[i].id, a->id ? a->id : (1ULL << 32) + i, __ATOMIC_RELEASE);
	return counters.list[i].id;
}

static int find_counter(uint64_t id)
{
	uint64_t i = id - (1ULL << 32);

	if (i < COUNTERS_MAX && counters.list[i].id == id)
		return (int)i;
	for (i = 0; id && i < counters.n && i < COUNTERS_MAX; i++)
		if (counters.list[i].id == id)
			return (int)i;
	return -1;
}

static void sample(uint64_t domain, uint64_t id, uint64_t bits, enum nvtx_payload_kind kind)
{
	struct shim_nvtx_counter *body;
	int i;

	if (!nvtx_records)
		return;
	i = find_counter(id);
	if (i < 0)
		return;
	nvtx__use(counters.list[i].name);
	nvtx__use(domain);
	body = lane__record(LANE_NVTX, NVTX_COUNTER, sizeof(*body), 0, shim__now());
	if (!body)
		return;
	*body = (struct shim_nvtx_counter){
		.name = counters.list[i].name, .domain = domain, .value = bits, .value_kind = kind
	};
	lane__commit(LANE_NVTX);
}

static void sample_int(uint64_t domain, uint64_t id, int64_t value)
{
	sample(domain, id, (uint64_t)value, NVTX_INT64);
}

static void sample_double(uint64_t domain, uint64_t id, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	sample(domain, id, bits, NVTX_DOUBLE);
}

/* A group of counters, whose layout is a schema, is not divided. */
static void sample_any(uint64_t domain, uint64_t id, const void *value, size_t size)
{
	int i = find_counter(id);
	uint64_t bits;
	uint32_t kind = i >= 0 && value ? nvtx_entry__number(counters.list[i].schema, value, size, &bits) : 0;

	if (kind)
		sample(domain, id, bits, kind);
}

static void sample_nothing(uint64_t domain, uint64_t id, uint8_t reason)
{
	if (reason == 0) /* NVTX_COUNTER_SAMPLE_ZERO */
		sample(domain, id, 0, NVTX_INT64);
	else
		sample(domain, id, 0, NVTX_NO_PAYLOAD);
}

/* nvtxDetail/nvtxExtTypes.h */
struct segment {
	size_t id, n;
	intptr_t *functions;
};

struct module {
	uint16_t version, size, id, compatible;
	size_t n;
	struct segment *segments;
};
enum { MODULE_PAYLOAD = 2, MODULE_COUNTERS = 4 };

static void *const payload_functions[] = {
	[0] = register_schema, register_enum, mark_payload, push_payload, pop_payload,
	start_payload,	       end_payload,   is_enabled,   timestamp,	  [12] = register_scope,
};
static void *const counter_functions[] = { register_counter, sample_int, sample_double, sample_any, sample_nothing };

/* NVTX calls this for each extension that a library uses. */
int InitializeInjectionNvtxExtension(void *info)
{
	const struct module *m = info;
	void *const *functions = m->id == MODULE_PAYLOAD ? payload_functions : counter_functions;
	size_t n = m->id == MODULE_PAYLOAD ? sizeof(payload_functions) / sizeof(void *) :
					     sizeof(counter_functions) / sizeof(void *);

	if (m->size < sizeof(*m) || !m->n || (m->id != MODULE_PAYLOAD && m->id != MODULE_COUNTERS))
		return 0;
	for (size_t i = 0; i < n && i < m->segments[0].n; i++)
		if (functions[i])
			m->segments[0].functions[i] = (intptr_t)functions[i];
	return 1;
}
