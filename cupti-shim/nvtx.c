// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions that programs call through NVTX's tables. Handles of domains and strings are ids of their texts. */
#define _GNU_SOURCE
#include "nvtx.h"

#include "shim.h"

#include <string.h>

#define TEXT_MAX 2000 /* bytes of a converted text */

bool nvtx_records, nvtx_passes_ranges;

void nvtx__use(uint64_t text)
{
	text__use(LANE_NVTX, NVTX_TEXT, text);
}

uint64_t nvtx__text(const char *text)
{
	return text ? text__id(LANE_NVTX, NVTX_TEXT, text, strlen(text)) : 0;
}

static size_t encode(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

uint64_t nvtx__wide_text(const wchar_t *text)
{
	char bytes[TEXT_MAX];
	size_t n = 0;

	if (!text)
		return 0;
	for (; *text && n < sizeof(bytes) - 4; text++)
		n += encode((uint32_t)*text, bytes + n);
	return text__id(LANE_NVTX, NVTX_TEXT, bytes, n);
}

static uint64_t message(int32_t type, uint64_t value)
{
	switch (type) {
	case MESSAGE_CHARS:
		return nvtx__text((const char *)value);
	case MESSAGE_WIDE:
		return nvtx__wide_text((const wchar_t *)value);
	case MESSAGE_REGISTERED:
		return value;
	default:
		return 0;
	}
}

static struct shim_nvtx_attributes named(uint64_t name)
{
	return (struct shim_nvtx_attributes){ .name = name };
}

static struct shim_nvtx_attributes attributes(uint64_t domain, const struct nvtx_attributes *a)
{
	if (!a || a->size < sizeof(*a))
		return (struct shim_nvtx_attributes){ .domain = domain };
	return (struct shim_nvtx_attributes){
		.name = message(a->message_type, a->message),
		.domain = domain,
		.payload = a->payload_type > 0 ? a->payload : 0,
		.category = a->category,
		.color = a->color_type == 1 ? a->color : 0,
		.payload_kind = a->payload_type == NVTX_PAYLOAD_EXT				? NVTX_STRUCT :
				a->payload_type >= NVTX_UINT64 && a->payload_type <= NVTX_FLOAT ? (u32)a->payload_type :
												  NVTX_NO_PAYLOAD,
	};
}

static void payload(const struct nvtx_attributes *a, uint64_t time)
{
	if (time && a && a->size >= sizeof(*a) && a->payload_type == NVTX_PAYLOAD_EXT && a->payloads > 0)
		nvtx__payload((const struct nvtx_payload_data *)a->payload, a->payloads, time);
}

uint64_t nvtx__mark(const struct shim_nvtx_attributes *a)
{
	struct shim_nvtx_mark *body;
	uint64_t time;

	if (!nvtx_records)
		return 0;
	time = shim__now();
	nvtx__use(a->name);
	nvtx__use(a->domain);
	body = lane__record(LANE_NVTX, NVTX_MARK, sizeof(*body), 0, time);
	if (!body)
		return 0;
	body->attributes = *a;
	lane__commit(LANE_NVTX);
	return time;
}

static void domain_mark(uint64_t domain, const struct nvtx_attributes *a)
{
	struct shim_nvtx_attributes ours;

	if (!nvtx_records)
		return;
	ours = attributes(domain, a);
	payload(a, nvtx__mark(&ours));
}

static uint64_t domain_start(uint64_t domain, const struct nvtx_attributes *a)
{
	struct shim_nvtx_attributes ours = attributes(domain, a);
	uint64_t time, id = nvtx__start(&ours, &time);

	payload(a, time);
	return id;
}

static int domain_push(uint64_t domain, const struct nvtx_attributes *a)
{
	struct shim_nvtx_attributes ours = attributes(domain, a);
	int level;

	payload(a, nvtx__push(&ours, &level));
	return level;
}

static void mark_ex(const struct nvtx_attributes *a)
{
	domain_mark(0, a);
}

static void mark(uint64_t name)
{
	struct shim_nvtx_attributes a = named(name);

	nvtx__mark(&a);
}

static void mark_a(const char *text)
{
	if (nvtx_records)
		mark(nvtx__text(text));
}

static void mark_w(const wchar_t *text)
{
	if (nvtx_records)
		mark(nvtx__wide_text(text));
}

static uint64_t start(uint64_t name)
{
	struct shim_nvtx_attributes a = named(name);
	uint64_t time;

	return nvtx__start(&a, &time);
}

static uint64_t start_ex(const struct nvtx_attributes *a)
{
	return domain_start(0, a);
}

static uint64_t start_a(const char *text)
{
	return start(nvtx__text(text));
}

static uint64_t start_w(const wchar_t *text)
{
	return start(nvtx__wide_text(text));
}

static int push(uint64_t name)
{
	struct shim_nvtx_attributes a = named(name);
	int level;

	nvtx__push(&a, &level);
	return level;
}

static int push_ex(const struct nvtx_attributes *a)
{
	return domain_push(0, a);
}

static int push_a(const char *text)
{
	return push(nvtx__text(text));
}

static int push_w(const wchar_t *text)
{
	return push(nvtx__wide_text(text));
}

static int pop(void)
{
	return nvtx__pop(0);
}

static void category_a(uint32_t category, const char *name)
{
	nvtx__name_category(0, category, nvtx__text(name));
}

static void category_w(uint32_t category, const wchar_t *name)
{
	nvtx__name_category(0, category, nvtx__wide_text(name));
}

static void domain_category_a(uint64_t domain, uint32_t category, const char *name)
{
	nvtx__name_category(domain, category, nvtx__text(name));
}

static void domain_category_w(uint64_t domain, uint32_t category, const wchar_t *name)
{
	nvtx__name_category(domain, category, nvtx__wide_text(name));
}

/* Names of a number (a device, a thread) and of a handle (a stream), in chars and wide. */
#define NAMES(function, type, kind)                                             \
	static void function##_a(type of, const char *name)                     \
	{                                                                       \
		nvtx__name_resource(kind, (uint64_t)of, nvtx__text(name));      \
	}                                                                       \
	static void function##_w(type of, const wchar_t *name)                  \
	{                                                                       \
		nvtx__name_resource(kind, (uint64_t)of, nvtx__wide_text(name)); \
	}
NAMES(thread, uint32_t, NVTX_OS_THREAD)
NAMES(device, uint32_t, NVTX_CUDA_DEVICE)
NAMES(context, uint64_t, NVTX_CUDA_CONTEXT)
NAMES(stream, uint64_t, NVTX_CUDA_STREAM)
NAMES(event, uint64_t, NVTX_CUDA_EVENT)

static void domain_end(uint64_t domain, uint64_t id)
{
	nvtx__end(id);
}

/* nvtxResourceAttributes_v0 */
struct resource {
	uint16_t version, size;
	int32_t type;
	uint64_t identifier;
	int32_t message_type;
	uint64_t message;
};

/* Their class is in the upper 16 bits of the type: 1 generic (3, 4: threads), 4 the driver, 5 the runtime. */
static enum nvtx_resource_kind resource_kind(int32_t type)
{
	static const struct {
		int32_t type;
		enum nvtx_resource_kind kind;
	} kinds[] = {
		{ 0x10003, NVTX_OS_THREAD },	{ 0x10004, NVTX_OS_THREAD },   { 0x40001, NVTX_CUDA_DEVICE },
		{ 0x40002, NVTX_CUDA_CONTEXT }, { 0x40003, NVTX_CUDA_STREAM }, { 0x40004, NVTX_CUDA_EVENT },
		{ 0x50000, NVTX_CUDA_DEVICE },	{ 0x50001, NVTX_CUDA_STREAM }, { 0x50002, NVTX_CUDA_EVENT },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return kinds[i].kind;
	return NVTX_OTHER_RESOURCE;
}

static uint64_t resource_create(uint64_t domain, const struct resource *r)
{
	if (!r || r->size < sizeof(*r))
		return 0;
	nvtx__name_resource(resource_kind(r->type), r->identifier, message(r->message_type, r->message));
	return 1;
}

static void resource_destroy(uint64_t resource)
{
}

static uint64_t register_a(uint64_t domain, const char *text)
{
	return nvtx__text(text);
}

static uint64_t register_w(uint64_t domain, const wchar_t *text)
{
	return nvtx__wide_text(text);
}

static uint64_t domain_create_a(const char *name)
{
	return nvtx__text(name);
}

static uint64_t domain_create_w(const wchar_t *name)
{
	return nvtx__wide_text(name);
}

static void domain_destroy(uint64_t domain)
{
}

static void initialize(const void *reserved)
{
}

void *const nvtx_functions[NVTX_SLOTS] = {
	[NVTX_TABLE_CORE] = mark_ex,
	mark_a,
	mark_w,
	start_ex,
	start_a,
	start_w,
	nvtx__end,
	push_ex,
	push_a,
	push_w,
	pop,
	category_a,
	category_w,
	thread_a,
	thread_w,
	[NVTX_TABLE_CUDA] = device_a,
	device_w,
	context_a,
	context_w,
	stream_a,
	stream_w,
	event_a,
	event_w,
	[NVTX_TABLE_CUDART] = device_a,
	device_w,
	stream_a,
	stream_w,
	event_a,
	event_w,
	[NVTX_TABLE_CORE2] = domain_mark,
	domain_start,
	domain_end,
	domain_push,
	nvtx__pop,
	resource_create,
	resource_destroy,
	domain_category_a,
	domain_category_w,
	register_a,
	register_w,
	domain_create_a,
	domain_create_w,
	domain_destroy,
	initialize,
};
