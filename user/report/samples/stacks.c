// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report stacks: the stacks with most time, by function; stacks that differ only in lines are merged. */
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "output/text.h"
#include "report/samples/sampled.h"
#include "report/stack_text.h"

struct path {
	struct sampled_weight w;
	u32 stack; /* one of them */
	u32 depth;
};

static const struct column columns[] = {
	{ "cpu_percent", "CPU %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "cpu_ns", "CPU", VALUE_U64, SHOW_NS },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "depth", "Frames", VALUE_U64, SHOW_PLAIN },
	{ "stack", "Stack", VALUE_TEXT, SHOW_PLAIN },
};

/*
 * Hashes the names of all functions from the outermost on; stacks with equal hashes are merged. The callers' hash is
 * computed once for each frame, as a trace may have many long stacks with common frames.
 */
static int hash_names(const struct stacks *s, u32 stack, struct map *hashes, u32 *way, u64 *out)
{
	u64 hash = stack && !stacks__frame(s, stack);
	u32 n = 0;

	for (u32 id = stack; id && n < STACKS_DEEPEST; id = stacks__frame(s, id)->caller) {
		const u64 *known = map__find(hashes, &id);

		if (known || !stacks__frame(s, id)) {
			hash = known ? *known : hash;
			break;
		}
		way[n++] = id;
	}
	while (n--) {
		u64 both[2] = { hash, stack_frame__name_hash(stacks__frame(s, way[n])) }, *to;

		hash = XXH3_64bits(both, sizeof(both));
		to = map__get(hashes, &way[n]);
		if (!to)
			return -ENOMEM;
		*to = hash;
	}
	*out = hash;
	return 0;
}

static int merge(struct sampled *s, struct map *paths)
{
	u32 *way = malloc(STACKS_DEEPEST * sizeof(*way));
	struct map hashes;
	int err = way ? 0 : -ENOMEM;

	map__init(&hashes, sizeof(u32), sizeof(u64));
	for (u32 i = 0; !err && i < s->by_stack.n; i++) {
		u32 stack = *(const u32 *)map__key(&s->by_stack, i);
		struct path *p = NULL;
		u64 hash;

		err = hash_names(s->stacks, stack, &hashes, way, &hash);
		if (!err)
			p = map__get(paths, &hash);
		if (!p)
			err = -ENOMEM;
		if (err)
			break;
		p->stack = stack;
		p->depth = stacks__depth(s->stacks, stack);
		sampled__add(&p->w, map__value(&s->by_stack, i));
	}
	map__free(&hashes);
	free(way);
	return err;
}

static int by_weight(const void *a, const void *b)
{
	const struct path *x = *(const struct path *const *)a, *y = *(const struct path *const *)b;
	int order = (x->w.cpu_ns < y->w.cpu_ns) - (x->w.cpu_ns > y->w.cpu_ns);

	if (!order)
		order = (x->w.off_ns < y->w.off_ns) - (x->w.off_ns > y->w.off_ns);
	return order ? order : (x->stack > y->stack) - (x->stack < y->stack);
}

/* Adds the stacks with most time first, since later texts may be cut. */
static int fill(struct sampled *s, const struct map *paths, struct table *t, struct report_output *out)
{
	const struct path **list = malloc((paths->n + 1) * sizeof(*list));
	struct stack_texts texts = {};

	if (!list)
		return -ENOMEM;
	for (u32 i = 0; i < paths->n; i++)
		list[i] = map__value(paths, i);
	qsort(list, paths->n, sizeof(*list), by_weight);
	for (u32 i = 0; i < paths->n; i++) {
		const struct path *p = list[i];
		char *text = stack_texts__add(&texts, s->stacks, p->stack);

		table__add(t, V_DBL(table__percent(p->w.cpu_ns, s->total.cpu_ns)), V_U64(p->w.cpu_ns),
			   V_U64(p->w.samples), V_U64(p->w.off_ns), V_U64(p->w.waits), V_U64(p->depth),
			   V_TEXT(text && *text ? text : "(no stack)"));
		free(text);
	}
	free(list);
	stack_texts__add_note(&texts, out);
	return 0;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "stacks", "The heaviest stacks, outermost function first", columns);
	struct map paths;
	struct sampled s;
	int err = sampled__read(&s, args);

	t->limit = 20;
	map__init(&paths, sizeof(u64), sizeof(struct path));
	if (!err)
		err = merge(&s, &paths);
	if (!err && sampled__add_notes(&s, args, out)) {
		err = fill(&s, &paths, t, out);
		report_output__finding(out, "%u different stacks in %llu samples, %s of CPU time.", paths.n,
				       s.total.samples, TEXT_NS(s.total.cpu_ns));
	}
	map__free(&paths);
	sampled__free(&s);
	return err;
}

REPORT(stacks) = {
	.name = "stacks",
	.doc = "the heaviest stacks of samples: Python and native frames, CPU time, time off the CPU",
	.kinds = "sample_cpu,sample_off",
	.run = run,
};
