// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A report as one JSON object. cJSON keeps numbers as doubles, which loses
 * nanoseconds beyond 2^53: whole numbers are put in as text.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock.h"
#include "model/facts.h"
#include "output/table.h"
#include "output/text.h"

/* All add_ functions return false without memory, as do cJSON's. */
static bool add_u64(cJSON *object, const char *key, u64 u)
{
	char buf[TEXT_NUMBER];

	snprintf(buf, sizeof(buf), "%llu", u);
	return cJSON_AddRawToObject(object, key, buf);
}

static bool add_s64(cJSON *object, const char *key, s64 s)
{
	char buf[TEXT_NUMBER];

	snprintf(buf, sizeof(buf), "%lld", s);
	return cJSON_AddRawToObject(object, key, buf);
}

static bool add_double(cJSON *object, const char *key, double d)
{
	char buf[TEXT_NUMBER];

	/* JSON knows no infinity */
	if (!isfinite(d))
		return cJSON_AddNullToObject(object, key);
	return cJSON_AddRawToObject(object, key, text__double(buf, sizeof(buf), d));
}

/* NULL: null */
static bool add_text(cJSON *object, const char *key, const char *text)
{
	char *utf8;
	bool ok;

	if (!text)
		return cJSON_AddNullToObject(object, key);
	utf8 = text__utf8(text, strlen(text));
	ok = utf8 && cJSON_AddStringToObject(object, key, utf8);
	free(utf8);
	return ok;
}

static bool add_value(cJSON *object, const char *key, const struct value *v)
{
	switch (v->type) {
	case VALUE_U64:
		return add_u64(object, key, v->u);
	case VALUE_S64:
		return add_s64(object, key, v->s);
	case VALUE_DOUBLE:
		return add_double(object, key, v->d);
	case VALUE_TEXT:
		return add_text(object, key, v->text);
	default:
		return cJSON_AddNullToObject(object, key);
	}
}

static bool add_pids(cJSON *o, const struct trace_ids *pids)
{
	cJSON *list = cJSON_AddArrayToObject(o, "only_pids");
	bool ok = list;

	for (u32 i = 0; ok && i < pids->n; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateNumber(pids->list[i]));
	return ok;
}

static bool add_trace(cJSON *root, const struct trace_facts *f)
{
	cJSON *o = cJSON_AddObjectToObject(root, "trace");
	const struct trace_summary *s = f->summary;
	char date[64];
	bool ok = o;

	ok = ok && add_text(o, "file", f->file) && add_text(o, "hostname", f->head->hostname);
	ok = ok && add_text(o, "machine_id", f->head->machine_id) && add_text(o, "boot_id", f->head->boot_id);
	ok = ok && add_text(o, "kernel", f->head->kernel) && add_text(o, "arch", f->head->arch);
	ok = ok && add_u64(o, "cpus", f->head->cpus);
	ok = ok && add_text(o, "sonde_version", f->head->sonde_version);
	ok = ok && add_text(o, "command", f->head->command) && add_text(o, "families", f->head->families);
	ok = ok &&
	     add_text(o, "start_date",
		      f->head->realtime ? clock__date(date, sizeof(date), trace_facts__realtime(f, f->start)) : NULL);
	ok = ok && add_u64(o, "start_realtime_ns", trace_facts__realtime(f, f->start));
	ok = ok && add_u64(o, "start_ns", f->start) && add_u64(o, "first_ns", s->first);
	ok = ok && add_u64(o, "last_ns", s->last) && add_u64(o, "events", s->events);
	ok = ok && cJSON_AddBoolToObject(o, "cut_off", !s->has_index || !f->end_reason);
	if (s->being_recorded)
		ok = ok && cJSON_AddTrueToObject(o, "being_recorded");
	ok = ok && cJSON_AddBoolToObject(o, "damaged", f->damaged != 0);
	/* what of it the report looked at */
	ok = ok && add_u64(o, "from_ns", f->from ? f->from : f->live);
	ok = ok && add_u64(o, "to_ns", f->to ? f->to : f->stop);
	ok = ok && add_u64(o, "traced_ns", trace_facts__traced(f));
	if (f->pids.n)
		ok = ok && add_pids(o, &f->pids);
	return ok && (f->tid ? add_u64(o, "only_tid", f->tid) : true);
}

static bool add_losses(cJSON *root, const struct trace_facts *f)
{
	cJSON *o, *list = cJSON_AddArrayToObject(root, "losses");
	struct loss_times times = trace_facts__times(f);
	const struct loss *l;
	char text[256];
	bool ok = list;
	u32 i;

	for (i = 0; ok && i < f->n_losses; i++) {
		l = &f->losses[i];
		o = cJSON_CreateObject();
		ok = cJSON_AddItemToArray(list, o);
		ok = ok && add_text(o, "family", l->family_name) && add_text(o, "reason", loss__reason(l->reason));
		ok = ok && add_u64(o, "count", l->count) && add_u64(o, "first_ns", l->first);
		ok = ok && add_u64(o, "last_ns", l->last) && add_text(o, "path", l->path);
		ok = ok && add_double(o, "share_percent", loss__percent(l));
		ok = ok && add_text(o, "changes", loss__consequence(text, sizeof(text), l, &times));
	}
	return ok;
}

/* Only where there are some. */
static bool add_refused(cJSON *root, const struct trace_facts *f)
{
	cJSON *o, *list = f->n_refused ? cJSON_AddArrayToObject(root, "refused_programs") : NULL;
	bool ok = list || !f->n_refused;

	for (u32 i = 0; ok && i < f->n_refused; i++) {
		const struct refused *r = &f->refused[i];

		o = cJSON_CreateObject();
		ok = cJSON_AddItemToArray(list, o);
		ok = ok && add_text(o, "family", r->family_name) && add_text(o, "program", r->program);
		ok = ok && add_text(o, "why", r->why) && add_text(o, "lacks", r->lacks);
		ok = ok && cJSON_AddBoolToObject(o, "all", r->all);
	}
	return ok;
}

static bool add_findings(cJSON *root, const struct report_output *out)
{
	/* what is no report of a trace (`sonde list`) has the key only if there is something */
	cJSON *list = out->facts || out->n_findings ? cJSON_AddArrayToObject(root, "findings") : root;
	bool ok = list;

	for (u32 i = 0; ok && i < out->n_findings; i++) {
		const struct report_finding *f = &out->findings[i];
		cJSON *figures, *o = cJSON_CreateObject();

		ok = cJSON_AddItemToArray(list, o) && add_text(o, "text", f->text);
		figures = ok ? cJSON_AddObjectToObject(o, "figures") : NULL;
		ok = figures;
		for (u32 k = 0; ok && k < f->n_figures; k++)
			ok = add_value(figures, f->figures[k].key, &f->figures[k].value);
	}
	return ok;
}

static bool add_notes(cJSON *root, const struct report_output *out)
{
	cJSON *list = out->facts || out->n_notes ? cJSON_AddArrayToObject(root, "notes") : root;
	bool ok = list;

	for (u32 i = 0; ok && i < out->n_notes; i++) {
		char *utf8 = text__utf8(out->notes[i], strlen(out->notes[i]));

		ok = utf8 && cJSON_AddItemToArray(list, cJSON_CreateString(utf8));
		free(utf8);
	}
	return ok;
}

static bool add_table(cJSON *tables, const struct table *t, s64 rows)
{
	cJSON *o, *list = cJSON_AddArrayToObject(tables, t->name);
	u32 i, c, n = rows > 0 && rows < t->n_rows ? (u32)rows : t->n_rows;
	bool ok = list;

	for (i = 0; ok && i < n; i++) {
		o = cJSON_CreateObject();
		ok = cJSON_AddItemToArray(list, o);
		for (c = 0; ok && c < t->n_columns; c++)
			ok = add_value(o, t->columns[c].key, &table__row(t, i)[c]);
	}
	return ok;
}

int print__json(const struct report_output *out, const struct output_options *options, FILE *file)
{
	cJSON *tables, *root = cJSON_CreateObject();
	const struct table *t;
	char *text = NULL;
	bool ok;

	ok = root && add_text(root, "report", out->name);
	ok = ok && (!out->facts ||
		    (add_trace(root, out->facts) && add_losses(root, out->facts) && add_refused(root, out->facts)));
	ok = ok && add_findings(root, out) && add_notes(root, out);
	tables = ok ? cJSON_AddObjectToObject(root, "tables") : NULL;
	ok = tables;
	for (t = out->tables; ok && t; t = t->next)
		ok = add_table(tables, t, options->rows);
	if (ok)
		text = cJSON_Print(root);
	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	fputs(text, file);
	putc('\n', file);
	free(text);
	return 0;
}
