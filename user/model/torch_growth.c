// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory that grows: what the steps of a loop allocated and what is still allocated at the end, by site. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/torch_memory.h"
#include "model/torch_private.h"
#include "output/text.h"
#include "util/array.h"
#include "util/compare.h"
#include "util/search.h"

/* A first step allocates what the optimizer needs, and the last ones are not over or their results are in use. */
#define SKIPPED_FIRST 1
#define SKIPPED_LAST  2
/* Fewer steps say little. */
#define STEPS_MIN 5

/* A block that is left, by its site and the step that allocated it */
struct left {
	u32 site, step;
	u64 bytes;
};

COMPARE_BY(by_site, struct left, ASCENDING(site), ASCENDING(step))

COMPARE_BY(by_bytes, struct torch_growth, DESCENDING(bytes))

/* Did it allocate in at least half of the steps? */
static bool is_steady(const struct torch_growths *g, const struct torch_growth *site)
{
	return site->steps >= (g->steps + 1) / 2;
}

static int collect(const struct torch_memory_sums *m, const struct torch_loop *l, u32 steps, struct left **list, u32 *n)
{
	const struct torch_step *first = &l->steps[SKIPPED_FIRST];

	MAP_EACH_ENTRY(const struct torch_block *block, const struct torch_address *address, &m->torch->memory) {
		u32 step = (u32)SEARCH(steps, k, first[k].end <= block->time);

		if (address->pid != l->pid || !block->site || block->time < first->start || step == steps)
			continue;
		if (!array__push(*list, *n, (struct left){ block->site->index, step, block->bytes }))
			return -ENOMEM;
	}
	if (*n)
		qsort(*list, *n, sizeof(**list), by_site);
	return 0;
}

int torch_memory__growth(const struct torch_memory_sums *m, const struct torch_loop *l, struct torch_growths *out)
{
	struct left *list = NULL;
	u32 n = 0;
	int err;

	*out = (struct torch_growths){ 0 };
	if (m->has_forgotten || l->n < SKIPPED_FIRST + STEPS_MIN + SKIPPED_LAST)
		return 0;
	out->steps = l->n - SKIPPED_FIRST - SKIPPED_LAST;
	err = collect(m, l, out->steps, &list, &n);
	for (u32 i = 0; !err && i < n; i++) {
		bool same_site = i && list[i].site == list[i - 1].site;
		struct torch_growth *g;

		if (!same_site && !array__push(out->list, out->n, (struct torch_growth){ .site = list[i].site })) {
			err = -ENOMEM;
			break;
		}
		g = &out->list[out->n - 1];
		g->steps += !same_site || list[i].step != list[i - 1].step;
		g->bytes += list[i].bytes;
		g->blocks++;
	}
	free(list);
	if (out->n)
		qsort(out->list, out->n, sizeof(*out->list), by_bytes);
	for (u32 i = 0; i < out->n; i++)
		out->bytes += is_steady(out, &out->list[i]) ? out->list[i].bytes : 0;
	return err;
}

const struct torch_growth *torch_growths__main(const struct torch_growths *g)
{
	u32 i;

	for (i = 0; i < g->n && !is_steady(g, &g->list[i]); i++)
		;
	return g->n && g->bytes / g->steps >= TORCH_GROWTH_MIN ? &g->list[i] : NULL;
}

char *torch_growths__text(const struct torch_growths *g, const struct torch_memory_sums *m, const char *line, char *buf,
			  size_t size)
{
	const struct torch_growth *site = torch_growths__main(g);
	const struct torch_memory_site_key *key = map__key(&m->sites, site->site);

	snprintf(buf, size, "memory grows by %s a step, over %u steps; %s of that is from %s%s%s",
		 TEXT_BYTES(g->bytes / g->steps), g->steps, TEXT_BYTES(site->bytes / g->steps),
		 key->name ? torch__name(m->torch, key->name) : "code in no operator", line ? ", called at " : "",
		 line ? line : "");
	return buf;
}
