// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/nvtx.h"
#include "output/text.h"

#define WHO_WIDTH    26
#define WHAT_WIDTH   24
#define FAMILY_WIDTH 8

void line__heading(FILE *out)
{
	fprintf(out, "# %13s  %-*s  %-8s  %-*s  %10s  %s\n", "time/s", WHO_WIDTH, "thread pid/tid", "family",
		WHAT_WIDTH, "function or event", "duration", "fields (@: seconds since the trace's start)");
}

static void print_text(FILE *out, const char *text, size_t len)
{
	bool quote = !len || memchr(text, ' ', len) || memchr(text, '"', len) || memchr(text, '=', len);

	fputs(quote ? "\"" : "", out);
	text__put_clean(out, text, len);
	fputs(quote ? "\"" : "", out);
}

/* Prints a name of the file's schema, which is untrusted. */
static void print_name(FILE *out, const char *name)
{
	text__put_clean(out, name, strlen(name));
}

static void print_number(FILE *out, const struct line_context *c, const struct schema_field *f, s64 value)
{
	const char *name = f->type == FIELD_ENUM ? schema_field__value_name(f, value) : NULL;
	const char *text, *unit = f->unit;
	char label[STACK_LABEL];

	if (c->names && !strcmp(unit, "task"))
		value = names__number(c->names, (u32)value);
	if (name) {
		print_name(out, name);
	} else if (!strcmp(unit, "hex")) {
		fprintf(out, "0x%llx", (u64)value);
	} else if (!strcmp(unit, "string")) {
		text = c->names ? names__string(c->names, (u32)value) : "";
		print_text(out, text, strlen(text));
	} else if (!strcmp(unit, "stack") && c->stacks) {
		text = value ? stacks__label(c->stacks, (u32)value, label, sizeof(label)) : "-";
		print_text(out, text, strlen(text));
	} else if (value && (!strcmp(unit, "moment") || (!strcmp(unit, "ns") && c->start && (u64)value >= c->start))) {
		/* older traces have no unit "moment": a value above the machine's uptime at the start is no duration */
		fprintf(out, "@%s", TEXT_SECONDS((u64)value, c->start, 9));
	} else if (schema_field__constant(f, value)) {
		fprintf(out, "%s%s", !strcmp(unit, "errno") ? "-" : "SIG", schema_field__constant(f, value));
	} else {
		unit = !strcmp(unit, "bytes") ? "B" : !strcmp(unit, "ns") ? "ns" : "";
		if (f->type == FIELD_UNSIGNED)
			fprintf(out, "%llu%s", (u64)value, unit);
		else
			fprintf(out, "%lld%s", value, unit);
	}
}

static void print_value(FILE *out, bool is_double, double d, s64 n)
{
	char buf[TEXT_NUMBER];

	if (is_double)
		fputs(text__double(buf, sizeof(buf), d), out);
	else
		fprintf(out, "%lld", n);
}

static void print_field(FILE *out, const struct line_context *c, const struct view *v, const struct schema_field *f)
{
	char buf[TEXT_NUMBER];
	const char *text;
	bool is_double;
	double d;
	s64 n;
	u32 len;

	putc(' ', out);
	print_name(out, f->name);
	putc('=', out);
	text = c->names ? names__text_of(c->names, v, f) : NULL;
	if (text)
		print_text(out, text, strlen(text));
	else if (nvtx__value(v, f, &is_double, &d, &n))
		print_value(out, is_double, d, n);
	else if (f->type == FIELD_TEXT || f->type == FIELD_TAIL) {
		text = view__text(v, f, &len);
		print_text(out, text, len);
	} else if (f->type == FIELD_FLOAT) {
		fputs(text__double(buf, sizeof(buf), view__double(v, f)), out);
		print_name(out, f->unit);
	} else if (v->event->id == ID_meta_frame) {
		struct line_context ids = *c;

		/* frames are printed by their ids */
		ids.stacks = NULL;
		print_number(out, &ids, f, view__s64(v, f));
	} else {
		print_number(out, c, f, view__s64(v, f));
	}
}

/* Fields of struct event and struct span have columns of their own; no other field lies in that range. */
static bool has_column(const struct view *v, const struct schema_field *f)
{
	return f->offset < (v->event->is_span ? sizeof(struct span) : sizeof(struct event));
}

static void print_flags(FILE *out, u64 flags)
{
	if (flags & EVENT_OPEN)
		fputs(" [not returned]", out);
	if (flags & EVENT_RETURN_NOT_SEEN)
		fputs(" [return not seen]", out);
	if (flags & EVENT_UNWOUND)
		fputs(" [unwound]", out);
	if (flags & EVENT_NO_DURATION)
		fputs(" [only entry seen]", out);
	if (flags & EVENT_STARTED_BEFORE)
		fputs(" [began before tracing]", out);
}

static void print_padded(FILE *out, const char *text, int width)
{
	char *clean = text__clean(text, strlen(text));
	size_t have = clean ? text__width(clean) : 0;

	fputs(clean ? clean : "", out);
	for (; have < (size_t)width; have++)
		putc(' ', out);
	free(clean);
}

static void print_who(FILE *out, const struct line_context *c, u32 pid, u32 tid)
{
	const char *comm = c->names && pid ? names__comm(c->names, pid, tid) : NULL;
	char who[192];

	if (!pid && !tid)
		snprintf(who, sizeof(who), "-");
	else
		snprintf(who, sizeof(who), "%s%s%u/%u", comm ? comm : "", comm ? " " : "",
			 c->names ? names__number(c->names, pid) : pid, c->names ? names__number(c->names, tid) : tid);
	print_padded(out, who, WHO_WIDTH);
}

int line__print(FILE *out, const struct line_context *c, const struct view *v)
{
	struct common_fields f = common_fields__of(v->event);
	const struct schema_family *family = schema__family_by_id(c->schema, (u8)EVENT_FAMILY(v->event->id));
	u64 time = (u64)view__s64(v, f.time), start = (u64)view__s64(v, f.start), flags = (u64)view__s64(v, f.flags);
	u16 probe = (u16)view__s64(v, f.probe);
	const char *function = c->names && probe ? names__probe(c->names, probe) : NULL;
	char buf[TEXT_NUMBER];
	u32 i;

	fprintf(out, "%15s  ", text__seconds(buf, sizeof(buf), time, c->start, 9));
	print_who(out, c, (u32)view__s64(v, f.pid), (u32)view__s64(v, f.tid));
	fputs("  ", out);
	print_padded(out, family ? family->name : "?", FAMILY_WIDTH);
	fputs("  ", out);
	/* a call's probe names its function; elsewhere the probe only says how the event was recorded */
	print_padded(out, v->event->is_call && function ? function : v->event->name, WHAT_WIDTH);
	if (v->event->is_span && !(flags & EVENT_NO_DURATION))
		text__ns(buf, sizeof(buf), time > start ? time - start : 0);
	else
		snprintf(buf, sizeof(buf), "-");
	fprintf(out, "  %10s ", buf);
	if (f.cpu)
		fprintf(out, " cpu=%lld", view__s64(v, f.cpu));
	for (i = 0; i < v->event->n; i++) {
		if (!has_column(v, &v->event->fields[i]))
			print_field(out, c, v, &v->event->fields[i]);
	}
	print_flags(out, flags);
	putc('\n', out);
	return ferror(out) ? -EIO : 0;
}

int line__print_record(FILE *out, const struct line_context *c, const void *record, u32 size)
{
	struct view v;

	if (!view__of_record(&v, c->schema, record, size))
		return -EINVAL;
	return line__print(out, c, &v);
}
