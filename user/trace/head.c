// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trace/head.h"
#include "util/json.h"

static bool add_machine(struct cJSON *to, const struct trace_head *h)
{
	struct cJSON *o = cJSON_AddObjectToObject(to, "machine");

	return o && json__add_text(o, "hostname", h->hostname) && json__add_text(o, "machine_id", h->machine_id) &&
	       json__add_text(o, "boot_id", h->boot_id) && json__add_text(o, "kernel", h->kernel) &&
	       json__add_text(o, "arch", h->arch) && json__add_u64(o, "cpus", h->cpus);
}

static bool add_run(struct cJSON *to, const struct trace_head *h)
{
	struct cJSON *o = cJSON_AddObjectToObject(to, "run");

	return o && json__add_text(o, "sonde_version", h->sonde_version) && json__add_text(o, "command", h->command) &&
	       json__add_text(o, "families", h->families);
}

static bool add_clocks(struct cJSON *to, const struct trace_head *h)
{
	struct cJSON *o = cJSON_AddObjectToObject(to, "clocks");

	return o && json__add_u64(o, "monotonic", h->monotonic) && json__add_u64(o, "boottime", h->boottime) &&
	       json__add_u64(o, "realtime", h->realtime) && json__add_u64(o, "error", h->clock_error);
}

char *head__print(const struct schema *schema, const struct trace_head *head)
{
	struct cJSON *o = cJSON_CreateObject(), *s = NULL;
	char *text = NULL;

	if (o && add_machine(o, head) && add_run(o, head) && add_clocks(o, head))
		s = schema__to_json(schema);
	if (s && cJSON_AddItemToObject(o, "schema", s))
		text = cJSON_PrintUnformatted(o);
	else
		cJSON_Delete(s);
	cJSON_Delete(o);
	return text;
}

static const char *text_of(const struct cJSON *o, const char *name)
{
	const char *text = json__text(o, name);

	return text ? text : "";
}

void head__parse(struct trace_head *head, const struct cJSON *json)
{
	const struct cJSON *machine = cJSON_GetObjectItemCaseSensitive(json, "machine");
	const struct cJSON *run = cJSON_GetObjectItemCaseSensitive(json, "run");
	const struct cJSON *clocks = cJSON_GetObjectItemCaseSensitive(json, "clocks");

	*head = (struct trace_head){
		.hostname = text_of(machine, "hostname"),
		.machine_id = text_of(machine, "machine_id"),
		.boot_id = text_of(machine, "boot_id"),
		.kernel = text_of(machine, "kernel"),
		.arch = text_of(machine, "arch"),
		.sonde_version = text_of(run, "sonde_version"),
		.command = text_of(run, "command"),
		.families = text_of(run, "families"),
		.cpus = json__u64(machine, "cpus", UINT32_MAX, NULL),
		.monotonic = json__u64(clocks, "monotonic", ~0ULL, NULL),
		.boottime = json__u64(clocks, "boottime", ~0ULL, NULL),
		.realtime = json__u64(clocks, "realtime", ~0ULL, NULL),
		.clock_error = json__u64(clocks, "error", ~0ULL, NULL),
	};
}
