// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When each event happened, a line each: the example of docs/adding-an-export.md. */
#include <errno.h>
#include <stdlib.h>

#include "export/export.h"
#include "model/order.h"

struct moments {
	struct export *e;
	struct order *order;
};

static int print(const struct view *v, void *arg)
{
	const struct moments *m = arg;
	u64 time = (u64)view__get(v, "time");

	fprintf(m->e->out, "%lld %lld %s\n", (s64)(time - m->e->facts->start), view__get(v, "tid"), v->event->name);
	return ferror(m->e->out) ? -EIO : 0;
}

static int begin(struct export *e)
{
	struct moments *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	e->data = m;
	m->e = e;
	m->order = order__new(print, m);
	return m->order ? 0 : -ENOMEM;
}

static int rows(struct export *e, const struct rows *rows)
{
	return order__add(((struct moments *)e->data)->order, rows);
}

static int end(struct export *e)
{
	struct moments *m = e->data;
	int err = 0;

	if (!m)
		return 0;
	if (m->order)
		err = order__finish(m->order);
	order__free(m->order);
	free(m);
	return err;
}

EXPORTER(moments) = {
	.name = "moments",
	.doc = "when each event happened: ns since the start, thread, kind",
	.begin = begin,
	.rows = rows,
	.end = end,
};
