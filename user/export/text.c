// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes a line for each event, in order of time. */
#include <errno.h>
#include <stdlib.h>

#include "export/export.h"
#include "model/order.h"
#include "model/line.h"

struct text {
	struct line_context context;
	struct order *order;
	FILE *out;
};

static int print(const struct view *v, void *arg)
{
	struct text *t = arg;

	return line__print(t->out, &t->context, v);
}

static int begin(struct export *e)
{
	struct text *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	e->data = t;
	t->context = (struct line_context){ trace__schema(e->trace), e->names, e->facts->start, e->stacks };
	t->out = e->out;
	t->order = order__new(print, t);
	line__heading(e->out);
	return t->order ? 0 : -ENOMEM;
}

static int rows(struct export *e, const struct rows *rows)
{
	return order__add(((struct text *)e->data)->order, rows);
}

static int end(struct export *e)
{
	struct text *t = e->data;
	int err = 0;

	if (!t)
		return 0;
	if (t->order)
		err = order__finish(t->order);
	order__free(t->order);
	free(t);
	return err;
}

EXPORTER(text) = {
	.name = "text",
	.doc = "an event a line, in order of time",
	.begin = begin,
	.rows = rows,
	.end = end,
};
