// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/info.h"

struct objects {
	const struct trace_facts *facts;
	const struct names *names;
	const struct schema *schema;
	struct table *table;
};

static int on_objects(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), method);
	const struct schema_family *f;
	struct objects *o = arg;
	u64 first, live, start = o->facts->start;
	const char *why, *how;

	ROWS_EACH(v, rows) {
		f = schema__family_by_id(o->schema, (u8)view__get(&v, "family"));
		first = (u64)view__get(&v, "first");
		live = (u64)view__get(&v, "live");
		why = names__string(o->names, (u32)view__get(&v, "why"));
		how = method ? schema_field__value_name(method, view__s64(&v, method)) : NULL;
		table__add(o->table, V_U64((u64)view__get(&v, "object")), V_TEXT(f ? f->name : NULL),
			   V_U64((u64)view__get(&v, "sites")), V_S64((s64)(first - start)),
			   live ? V_S64((s64)(live - start)) : V_NONE,
			   live ? V_U64(live > first ? live - first : 0) : V_NONE, V_TEXT(how),
			   V_TEXT(view__get(&v, "ahead") ? "on disk" : "mapped"),
			   V_TEXT(names__string(o->names, (u32)view__get(&v, "build_id"))), V_TEXT(*why ? why : NULL),
			   V_TEXT(names__string(o->names, (u32)view__get(&v, "path"))));
	}
	return 0;
}

int info__objects(struct trace *t, const struct trace_facts *facts, const struct names *names,
		  struct report_output *out)
{
	static const struct column columns[] = {
		{ "object", "Object", VALUE_U64, SHOW_PLAIN },
		{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
		{ "sites", "Sites", VALUE_U64, SHOW_COUNT },
		{ "from_ns", "Mapped (s)", VALUE_S64, SHOW_SECONDS },
		{ "live_ns", "Live (s)", VALUE_S64, SHOW_SECONDS },
		{ "attach_gap_ns", "Attach gap", VALUE_U64, SHOW_NS },
		{ "method", "Method", VALUE_TEXT, SHOW_NEVER },
		{ "found", "Found", VALUE_TEXT, SHOW_PLAIN },
		{ "build_id", "Build id", VALUE_TEXT, SHOW_NEVER },
		{ "why", "Not attached because", VALUE_TEXT, SHOW_PLAIN },
		{ "path", "Path", VALUE_TEXT, SHOW_PLAIN },
	};
	struct objects o = { facts, names, trace__schema(t), NULL };

	o.table = REPORT_TABLE(out, "objects", "Probed files", columns);
	return trace__read_kind(t, "meta_object", on_objects, &o);
}

static const struct column cost_columns[] = {
	{ "wall_ns", "Elapsed", VALUE_U64, SHOW_NS },
	{ "user_ns", "User CPU", VALUE_U64, SHOW_NS },
	{ "system_ns", "System CPU", VALUE_U64, SHOW_NS },
	{ "children_ns", "CPU of children", VALUE_U64, SHOW_NS },
	{ "probes_ns", "In probes (estimated)", VALUE_U64, SHOW_NS },
	{ "hits", "Probe hits", VALUE_U64, SHOW_COUNT },
	{ "memory_bytes", "Peak memory", VALUE_U64, SHOW_BYTES },
	{ "written_bytes", "Written", VALUE_U64, SHOW_BYTES },
};

struct cost {
	u64 wall, values[8];
};

static int on_cost(const struct rows *rows, void *arg)
{
	static const char *const names[] = {
		"wall", "user", "system", "children", "probes", "hits", "memory", "written"
	};
	struct cost *c = arg;
	u32 i;

	ROWS_EACH(v, rows) {
		if ((u64)view__get(&v, "wall") < c->wall)
			continue;
		c->wall = (u64)view__get(&v, "wall");
		for (i = 0; i < 8; i++)
			c->values[i] = (u64)view__get(&v, names[i]);
	}
	return 0;
}

int info__cost(struct trace *t, struct report_output *out)
{
	struct table *table = REPORT_TABLE(out, "cost", "What tracing cost", cost_columns);
	struct cost c = { 0 };
	int err = trace__read_kind(t, "meta_cost", on_cost, &c);
	const u64 *v = c.values;

	if (!err && c.wall)
		table__add(table, V_U64(v[0]), V_U64(v[1]), V_U64(v[2]), V_U64(v[3]), V_U64(v[4]), V_U64(v[5]),
			   V_U64(v[6]), V_U64(v[7]));
	return err;
}
