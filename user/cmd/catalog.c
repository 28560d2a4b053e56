// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/catalog.h"

#include <stdio.h>
#include <string.h>

#include "kernel/embedded.h"

void catalog__families(const struct embedded *bpf, struct report_output *out)
{
	static const struct column columns[] = {
		{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },	     { "id", "Id", VALUE_U64, SHOW_HEX },
		{ "default", "By default", VALUE_TEXT, SHOW_PLAIN }, { "lean", "In lean", VALUE_TEXT, SHOW_PLAIN },
		{ "events", "Events", VALUE_U64, SHOW_COUNT },	     { "programs", "Programs", VALUE_U64, SHOW_COUNT },
		{ "doc", "What it traces", VALUE_TEXT, SHOW_PLAIN },
	};
	struct table *t = REPORT_TABLE(out, "families", "Families (for `sonde record -t`)", columns);
	const struct schema *schema = bpf->schema;
	const struct schema_family *f;
	u64 events, programs;
	u32 i, j;

	for (i = 0; i < schema->n_families; i++) {
		f = &schema->families[i];
		for (events = j = 0; j < schema->n_events; j++)
			events += EVENT_FAMILY(schema->events[j].id) == f->id;
		for (programs = j = 0; j < bpf->probes.n_programs; j++)
			programs += bpf->probes.programs[j].family == f;
		table__add(t, V_TEXT(f->name), V_U64(f->id), V_TEXT(f->by_default ? "yes" : "no"),
			   V_TEXT(f->lean ? "yes" : "no"), V_U64(events), V_U64(programs), V_TEXT(f->doc));
	}
}

static const char *kind_name(const struct section *s)
{
	switch (s->kind) {
	case SECTION_SPAN:
		return "call";
	case SECTION_ENTRY:
		return "entry";
	case SECTION_PLACED:
		return "call, its ends placed";
	case SECTION_SITE:
		return "probe site found by analysis";
	case SECTION_TRACEPOINT:
		return "tracepoint";
	case SECTION_ITER:
		return "iterator";
	case SECTION_CLOCK:
		return "clock";
	case SECTION_CALLED:
		return "called by others";
	default:
		return "other";
	}
}

/* Adds a row for each function that the program probes. */
static void add_probes(struct table *t, const struct program *p)
{
	const struct section *s = &p->section;
	char option[128], function[512];
	const char *list = s->rest;
	bool more = true, functions = *s->library;

	snprintf(option, sizeof(option), "--%s=%s", p->family->name, s->option);
	if (functions)
		more = section__next_function(&list, function, sizeof(function));
	while (more) {
		table__add(t, V_TEXT(p->family->name), V_TEXT(*s->library ? s->library : NULL),
			   V_TEXT(functions ? function : s->rest), V_TEXT(kind_name(s)),
			   V_TEXT(*s->option ? option : NULL), V_TEXT(s->on_demand ? "while needed" : "always"),
			   V_TEXT(p->name), V_TEXT(p->full_section));
		more = functions && section__next_function(&list, function, sizeof(function));
	}
}

void catalog__probes(const struct embedded *bpf, struct report_output *out)
{
	static const struct column columns[] = {
		{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
		{ "object", "Object", VALUE_TEXT, SHOW_PLAIN },
		{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
		{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
		{ "option", "Needs option", VALUE_TEXT, SHOW_PLAIN },
		{ "on_demand", "Attached", VALUE_TEXT, SHOW_PLAIN },
		{ "program", "Program", VALUE_TEXT, SHOW_PLAIN },
		{ "section", "Section", VALUE_TEXT, SHOW_NEVER },
	};
	struct table *t = REPORT_TABLE(out, "probes", "Probes", columns);
	u32 i;

	for (i = 0; i < bpf->probes.n_programs; i++)
		add_probes(t, &bpf->probes.programs[i]);
	table__sort(t, "function");
	table__sort(t, "object");
	table__sort(t, "family");
}

void catalog__events(const struct embedded *bpf, struct report_output *out)
{
	static const struct column columns[] = {
		{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },	{ "id", "Id", VALUE_U64, SHOW_HEX },
		{ "family", "Family", VALUE_TEXT, SHOW_PLAIN }, { "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
		{ "bytes", "Size", VALUE_U64, SHOW_BYTES },	{ "doc", "What it is", VALUE_TEXT, SHOW_PLAIN },
	};
	const struct schema *schema = bpf->schema;
	struct table *t = REPORT_TABLE(out, "events", "Events", columns);
	const struct schema_family *f;
	const struct schema_event *e;
	u32 i;

	for (i = 0; i < schema->n_events; i++) {
		e = &schema->events[i];
		f = schema__family_by_id(schema, (u8)EVENT_FAMILY(e->id));
		table__add(t, V_TEXT(e->name), V_U64(e->id), V_TEXT(f ? f->name : NULL),
			   V_TEXT(e->is_call ? "call" :
				  e->is_span ? "span" :
					       "event"),
			   V_U64(e->size), V_TEXT(e->doc));
	}
}

static const char *type_name(const struct schema_field *f)
{
	static const char *const names[] = {
		[FIELD_UNSIGNED] = "unsigned", [FIELD_SIGNED] = "signed", [FIELD_FLOAT] = "float",
		[FIELD_ENUM] = "enum",	       [FIELD_TEXT] = "text",	  [FIELD_TAIL] = "text to the end",
	};

	return f->values ? f->values->name : names[f->type];
}

void catalog__fields(const struct embedded *bpf, struct report_output *out)
{
	static const struct column columns[] = {
		{ "event", "Event", VALUE_TEXT, SHOW_PLAIN },	     { "name", "Field", VALUE_TEXT, SHOW_PLAIN },
		{ "type", "Type", VALUE_TEXT, SHOW_PLAIN },	     { "bytes", "Size", VALUE_U64, SHOW_PLAIN },
		{ "offset_bytes", "Offset", VALUE_U64, SHOW_PLAIN }, { "unit", "Unit", VALUE_TEXT, SHOW_PLAIN },
		{ "doc", "What it is", VALUE_TEXT, SHOW_PLAIN },
	};
	const struct schema *schema = bpf->schema;
	struct table *t = REPORT_TABLE(out, "fields", "Fields", columns);
	const struct schema_field *f;
	const struct schema_event *e;
	u32 i, j;

	for (i = 0; i < schema->n_events; i++) {
		e = &schema->events[i];
		for (j = 0; j < e->n; j++) {
			f = &e->fields[j];
			table__add(t, V_TEXT(e->name), V_TEXT(f->name), V_TEXT(type_name(f)), V_U64(f->size),
				   V_U64(f->offset), V_TEXT(f->unit), V_TEXT(f->doc));
		}
	}
}

void catalog__options(const struct embedded *bpf, struct report_output *out)
{
	static const struct column columns[] = {
		{ "option", "Option", VALUE_TEXT, SHOW_OPTION },
		{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
		{ "doc", "What it adds", VALUE_TEXT, SHOW_PLAIN },
	};
	const struct schema *schema = bpf->schema;
	struct table *t = REPORT_TABLE(out, "options", "Options (for `sonde record`)", columns);
	const struct schema_option *o;
	char option[128];
	u32 i;

	for (i = 0; i < schema->n_options; i++) {
		o = &schema->options[i];
		if (*o->number)
			snprintf(option, sizeof(option), "--%s-%s %s", o->family, o->name, o->number);
		else
			snprintf(option, sizeof(option), "--%s=%s", o->family, o->name);
		table__add(t, V_TEXT(option), V_TEXT(o->family), V_TEXT(o->doc));
	}
}
