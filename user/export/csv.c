// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes all fields of one kind of event as CSV (RFC 4180), in order of time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/value.h"
#include "model/order.h"
#include "output/text.h"

/* Control characters are escaped, because without -o a terminal shows them. */
static void put_text(FILE *out, const char *text, size_t len)
{
	char *clean = text__clean(text, strnlen(text, len));

	text__put_csv(out, clean ? clean : "?");
	free(clean);
}

/* Returns the unit of a number, "" for fields that are written as text. */
static const char *unit_of(const struct schema_field *f)
{
	return !strcmp(f->unit, "moment") ? "ns" : !strcmp(f->unit, "ns") || !strcmp(f->unit, "bytes") ? f->unit : "";
}

static void put_heading(struct export *e)
{
	u32 i;

	for (i = 0; i < e->event->n; i++) {
		const struct schema_field *f = &e->event->fields[i];

		fputs(i ? "," : "", e->out);
		put_text(e->out, f->name, strlen(f->name));
		if (*unit_of(f))
			fprintf(e->out, " (%s)", unit_of(f));
	}
	fputs(event__has_torch_name(e->event) ? ",torch_name,probe_name" : ",probe_name", e->out);
	for (i = 0; i < e->event->n; i++) {
		if (!field__is_stack(&e->event->fields[i]))
			continue;
		putc(',', e->out);
		put_text(e->out, e->event->fields[i].name, strlen(e->event->fields[i].name));
		fputs("_name", e->out);
	}
	putc('\n', e->out);
}

/* Writes the innermost frame of each stack. */
static void put_stacks(const struct export *e, const struct view *v)
{
	char label[STACK_LABEL];

	for (u32 i = 0; i < v->event->n; i++) {
		u32 id = (u32)view__s64(v, &v->event->fields[i]);

		if (!field__is_stack(&v->event->fields[i]))
			continue;
		putc(',', e->out);
		if (!id)
			continue;
		stacks__label(e->stacks, id, label, sizeof(label));
		put_text(e->out, label, strlen(label));
	}
}

static int put_line(const struct view *v, void *arg)
{
	struct export *e = arg;
	struct field_value value;
	char buf[TEXT_NUMBER], title[EVENT_TITLE];
	const char *function, *name;
	u32 i;

	for (i = 0; i < v->event->n; i++) {
		field_value__get(&value, e->names, v, &v->event->fields[i], false);
		if (i)
			putc(',', e->out);
		if (value.type == FIELD_IS_TEXT)
			put_text(e->out, value.text, value.len);
		else if (value.type == FIELD_IS_HEX)
			fprintf(e->out, "0x%llx", value.u);
		else if (value.type == FIELD_IS_DOUBLE)
			fputs(text__double(buf, sizeof(buf), value.d), e->out);
		else
			fprintf(e->out, value.type == FIELD_IS_U64 ? "%llu" : "%lld", value.u);
	}
	name = event__has_torch_name(v->event) ? names__torch(e->names, v, title, sizeof(title)) : NULL;
	if (event__has_torch_name(v->event)) {
		putc(',', e->out);
		put_text(e->out, name ? name : "", name ? strlen(name) : 0);
	}
	function = names__probe(e->names, (u16)view__get(v, "probe"));
	putc(',', e->out);
	put_text(e->out, function ? function : "", function ? strlen(function) : 0);
	put_stacks(e, v);
	putc('\n', e->out);
	return ferror(e->out) ? -EIO : 0;
}

static int begin(struct export *e)
{
	e->data = order__new(put_line, e);
	put_heading(e);
	return e->data ? 0 : -ENOMEM;
}

static int rows(struct export *e, const struct rows *rows)
{
	return order__add(e->data, rows);
}

static int end(struct export *e)
{
	int err = e->data ? order__finish(e->data) : 0;

	order__free(e->data);
	return err;
}

EXPORTER(csv) = {
	.name = "csv",
	.doc = "one kind of event (--event), a line each, all its fields",
	.one_kind = true,
	.begin = begin,
	.rows = rows,
	.end = end,
};
