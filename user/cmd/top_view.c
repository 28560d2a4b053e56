// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes the figures of `sonde top` from what reports gil, python and summary find in the last interval. */
#include "cmd/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "findings/findings.h"
#include "report/python/gil.h"
#include "report/samples/sampled.h"
#include "util/array.h"
#include "util/compare.h"

/* GILs and processes that are remembered for their numbers */
#define GILS_MAX 8192

COMPARE_BY(by_load, struct top_gil, DESCENDING(load_percent))

COMPARE_BY(by_waits, struct gil_blamed, DESCENDING(wait_ns))

COMPARE_BY(by_total, struct top_function, DESCENDING(total_ns), DESCENDING(self_ns))

COMPARE_BY(by_self, struct top_function, DESCENDING(self_ns), DESCENDING(total_ns))

void top_view__sort(struct top_view *v, enum top_sort sort)
{
	if (v->n_functions)
		qsort(v->functions, v->n_functions, sizeof(*v->functions), sort == TOP_TOTAL ? by_total : by_self);
}

/* Returns the GIL's number in its process, from 0, in the order of appearance. */
static u32 number_of(struct recent *numbers, const struct gil_key *gil)
{
	struct gil_key count_of = { .pid = gil->pid }; /* how many the process has */
	u32 *number = recent__get(numbers, gil), given = number ? *number : 0, *count;

	if (given)
		return given - 1;
	count = recent__get(numbers, &count_of);
	if (!count)
		return 0;
	given = ++*count;
	number = recent__get(numbers, gil);
	if (number)
		*number = given;
	return given - 1;
}

static int add_gil(struct top_view *v, const struct query *q, const struct gil_key *gil,
		   const struct gil_interpreter *of)
{
	u64 duration = query__duration(q);
	struct top_gil one = {
		.pid = gil->pid,
		.number = number_of(&v->numbers, gil),
		.load_percent = duration ? 100 * of->busy / (double)duration : 0,
		.waits = gil_waits__count(&of->waits),
		.wait_ns = gil_waits__ns(&of->waits),
		.threads = of->threads,
		.deepest = of->deepest,
	};

	/* an estimate may exceed the time */
	one.load_percent = one.load_percent < 100 ? one.load_percent : 100;
	snprintf(one.name, sizeof(one.name), "%s", names__comm(q->names, gil->pid, 0) ?: "");
	return array__push(v->gils, v->n_gils, one) ? 0 : -ENOMEM;
}

static int read_gils(struct top_view *v, const struct query *q)
{
	struct gil_blamed pair;
	struct gil_report g;
	int err = gil_report__read(&g, q);

	for (u32 i = 0; !err && i < g.interpreters.n; i++)
		err = add_gil(v, q, map__key(&g.interpreters, i), map__value(&g.interpreters, i));
	for (u32 i = 0; !err && gil_blame__pair(&g, i, &pair); i++)
		err = array__push(v->pairs, v->n_pairs, pair) ? 0 : -ENOMEM;
	v->sliced = g.paused;
	gil_report__free(&g);
	if (v->n_gils)
		qsort(v->gils, v->n_gils, sizeof(*v->gils), by_load);
	if (v->n_pairs)
		qsort(v->pairs, v->n_pairs, sizeof(*v->pairs), by_waits);
	return err;
}

static int read_functions(struct top_view *v, const struct query *q)
{
	struct sampled s;
	struct map functions = { 0 };
	int err = sampled__read(&s, q);

	if (!err)
		err = sampled__by_code(&s, false, &functions, NULL);
	for (u32 i = 0; !err && i < functions.n; i++) {
		const struct sampled_code *c = map__value(&functions, i);
		struct top_function f = {
			.self_percent = table__percent(c->self.cpu_ns, s.total.cpu_ns),
			.total_percent = table__percent(c->total.cpu_ns, s.total.cpu_ns),
			.self_ns = c->self.cpu_ns,
			.total_ns = c->total.cpu_ns,
		};

		stacks__function(s.stacks, c->frame, f.name, sizeof(f.name));
		err = array__push(v->functions, v->n_functions, f) ? 0 : -ENOMEM;
	}
	map__free(&functions);
	sampled__free(&s);
	top_view__sort(v, TOP_SELF);
	return err;
}

void top_view__init(struct top_view *v)
{
	*v = (struct top_view){ 0 };
	recent__init(&v->numbers, sizeof(struct gil_key), sizeof(u32), GILS_MAX);
}

static void free_figures(struct top_view *v)
{
	free(v->gils);
	free(v->pairs);
	free(v->functions);
	v->gils = NULL;
	v->pairs = NULL;
	v->functions = NULL;
	v->n_gils = v->n_pairs = v->n_functions = 0;
}

void top_view__free(struct top_view *v)
{
	free_figures(v);
	recent__free(&v->numbers);
}

int top_view__read(struct top_view *v, const struct query *q)
{
	int err = findings__first(&v->finding, q);

	free_figures(v);
	v->from = q->from;
	v->to = q->to;
	if (!err)
		err = read_gils(v, q);
	return err ? err : read_functions(v, q);
}
