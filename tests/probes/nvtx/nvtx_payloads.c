// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls NVTX's extensions for payloads and counters: nvtx_payloads ROUNDS. Waits for a line on stdin first. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

enum phase { WARM = 1, HOT = 5 };

struct inner {
	int32_t a;
	float b;
};

struct step {
	uint32_t batch;
	double loss;
	int8_t small;
	char label[8];
	uint16_t sizes[3];
	enum phase phase;
	struct inner inner;
	const char *note;
};

static const nvtxPayloadEnum_t phases[] = { { "warm", WARM, 0 }, { "hot", HOT, 0 } };

static nvtxPayloadData_t data_of(uint64_t schema, const struct step *s)
{
	return (nvtxPayloadData_t){ schema, sizeof(*s), s };
}

static uint64_t register_inner(nvtxDomainHandle_t domain)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "a" },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "b" },
	};
	nvtxPayloadSchemaAttr_t attr = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES,
		.name = "inner",
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = 2,
	};

	return nvtxPayloadSchemaRegister(domain, &attr);
}

static uint64_t register_step(nvtxDomainHandle_t domain)
{
	nvtxPayloadEnumAttr_t names = {
		.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE,
		.name = "phase",
		.entries = phases,
		.numEntries = 2,
		.sizeOfEnum = sizeof(enum phase),
	};
	nvtxPayloadSchemaEntry_t entries[] = {
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "batch" },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss" },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "small" },
		{ NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "label", NULL, 8 },
		{ NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "sizes", NULL, 3 },
		{ 0, nvtxPayloadEnumRegister(domain, &names), "phase" },
		{ 0, register_inner(domain), "inner" },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "note" },
	};
	nvtxPayloadSchemaAttr_t attr = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
		.name = "step",
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = sizeof(entries) / sizeof(entries[0]),
		.payloadStaticSize = sizeof(struct step),
	};

	return nvtxPayloadSchemaRegister(domain, &attr);
}

static void mark_with_schema(nvtxDomainHandle_t domain, nvtxPayloadData_t *data)
{
	nvtxEventAttributes_t a = { .version = NVTX_VERSION,
				    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				    .messageType = NVTX_MESSAGE_TYPE_ASCII,
				    .message.ascii = "core mark",
				    .payloadType = NVTX_PAYLOAD_TYPE_EXT,
				    .reserved0 = 1,
				    .payload.ullValue = (uint64_t)(uintptr_t)data };

	nvtxDomainMarkEx(domain, &a);
}

static uint64_t counter(nvtxDomainHandle_t domain, const char *name, uint64_t type)
{
	nvtxCounterAttr_t attr = { .structSize = sizeof(attr), .schemaId = type, .name = name };

	return nvtxCounterRegister(domain, &attr);
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[argc - 1]);
	nvtxDomainHandle_t domain;
	uint64_t schema, ints, doubles, raw;
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	domain = nvtxDomainCreateA("extended");
	schema = register_step(domain);
	ints = counter(domain, "ints", NVTX_PAYLOAD_ENTRY_TYPE_INT64);
	doubles = counter(domain, "doubles", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE);
	raw = counter(domain, "raw", NVTX_PAYLOAD_ENTRY_TYPE_UINT16);
	printf("%d\n%d\n", getpid(), nvtxDomainIsEnabled(domain));
	for (int i = 0; i < rounds; i++) {
		struct step s = { (uint32_t)i, i + 0.25, -3, "label", { 1, 2, 3 }, HOT, { -7, 0.5 }, "a note" };
		nvtxPayloadData_t data = data_of(schema, &s);
		uint16_t word = (uint16_t)(i + 1);
		nvtxRangeId_t id;

		nvtxRangePushPayload(domain, &data, 1);
		nvtxMarkPayload(domain, &data, 1);
		mark_with_schema(domain, &data);
		nvtxRangePopPayload(domain, NULL, 0);
		id = nvtxRangeStartPayload(domain, &data, 1);
		nvtxRangeEndPayload(domain, id, NULL, 0);
		nvtxCounterSampleInt64(domain, ints, -i);
		nvtxCounterSampleFloat64(domain, doubles, i * 0.5);
		nvtxCounterSample(domain, raw, &word, sizeof(word));
		nvtxCounterSampleNoValue(domain, raw, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
	}
	return 0;
}
#else
int main(void)
{
	puts("these headers have no payloads");
	return 77;
}
#endif
