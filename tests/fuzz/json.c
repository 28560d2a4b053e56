// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads any text as the JSON of a trace's head: the schema and the description of the machine. */
#include <cjson/cJSON.h>

#include "fuzz.h"
#include "schema/schema.h"
#include "trace/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cJSON *json = cJSON_ParseWithLength((const char *)data, size);
	struct trace_head head;
	struct schema *s;
	char err[256];

	if (json) {
		head__parse(&head, json);
		fuzz__use(head.cpus + head.monotonic + head.hostname[0]);
	}
	if (json && !schema__from_json(&s, json, err, sizeof(err))) {
		cJSON_Delete(schema__to_json(s));
		schema__free(s);
	}
	cJSON_Delete(json);
	return 0;
}
