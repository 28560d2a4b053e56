// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The heaviest stacks, by function: stacks that differ only in lines are one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "output/text.h"
#include "report/sampled.h"

#define FOLDED_MAX (64 << 10)

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

/* Into text; returns its length. */
static size_t folded(const struct sampled *s, u32 stack, char *text)
{
	size_t len = stack ? stacks__folded(s->stacks, stack, text, FOLDED_MAX) : 0;

	if (len >= FOLDED_MAX)
		len = strlen(text);
	if (!len)
		len = (size_t)snprintf(text, FOLDED_MAX, "(no stack)");
	return len;
}

static void fill(struct sampled *s, const struct map *paths, char *text, struct table *t)
{
	for (u32 i = 0; i < paths->n; i++) {
		const struct path *p = map__value(paths, i);

		folded(s, p->stack, text);
		table__add(t, V_DBL(table__percent(p->w.cpu_ns, s->all.cpu_ns)), V_U64(p->w.cpu_ns),
			   V_U64(p->w.samples), V_U64(p->w.off_ns), V_U64(p->w.waits), V_U64(p->depth), V_TEXT(text));
	}
	table__sort(t, s->all.cpu_ns ? "cpu_ns" : "off_cpu_ns");
}

static int merge(struct sampled *s, struct map *paths, char *text)
{
	for (u32 i = 0; i < s->by_stack.n; i++) {
		u32 stack = *(const u32 *)map__key(&s->by_stack, i);
		u64 hash = XXH3_64bits(text, folded(s, stack, text));
		struct path *p = map__get(paths, &hash);

		if (!p)
			return -ENOMEM;
		p->stack = stack;
		p->depth = stacks__depth(s->stacks, stack);
		sampled__add(&p->w, map__value(&s->by_stack, i));
	}
	return 0;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "stacks", "The heaviest stacks, outermost function first", columns);
	char *text = malloc(FOLDED_MAX), buf[TEXT_NUMBER];
	struct map paths;
	struct sampled s;
	int err = sampled__read(&s, args);

	t->limit = 20;
	map__init(&paths, sizeof(u64), sizeof(struct path));
	if (!text)
		err = -ENOMEM;
	if (!err)
		err = merge(&s, &paths, text);
	if (!err && sampled__say(&s, args, out)) {
		fill(&s, &paths, text, t);
		report_output__finding(out, "%u different stacks in %llu samples, %s of CPU time.", paths.n,
				       s.all.samples, text__ns(buf, sizeof(buf), s.all.cpu_ns));
	}
	map__free(&paths);
	sampled__free(&s);
	free(text);
	return err;
}

REPORT(stacks) = {
	.name = "stacks",
	.doc = "the heaviest stacks of samples: Python and native frames, CPU time, time off the CPU",
	.kinds = "sample_cpu,sample_off",
	.run = run,
};
