// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Training loops whose steps leave memory of tensors allocated. */
#include <stdio.h>
#include <stdlib.h>

#include "findings/finding.h"
#include "model/torch_memory.h"

static void add(const struct finding_input *in, const struct torch_memory_sums *m, const struct torch_loop *l,
		const struct torch_growths *g, struct findings *out)
{
	const struct torch_growth *site = torch_growths__main(g);
	const struct torch_memory_site_key *key = site ? map__key(&m->sites, site->site) : NULL;
	struct finding *f = site ? findings__add(out, FINDING_GROWTH) : NULL;

	if (!f)
		return;
	f->is_notice = true;
	f->pid = l->pid;
	f->processes = 1;
	f->times = g->steps;
	finding_code__fill(&f->code, in->stacks, key->stack);
	torch_growths__text(g, m, NULL, f->detail, sizeof(f->detail));
	snprintf(f->report, sizeof(f->report), "torch-memory");
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct torch_memory_sums *m = NULL;
	int err = 0;

	if (!in->torch || !in->torch->n || !trace__has(in->q->trace, "torch_alloc"))
		return 0;
	err = torch_memory__new(&m, in->q);
	for (u32 i = 0; !err && i < in->torch->n; i++) {
		struct torch_growths growths;

		err = torch_memory__growth(m, &in->torch->loops[i], &growths);
		if (!err)
			add(in, m, &in->torch->loops[i], &growths, out);
		free(growths.list);
	}
	torch_memory__free(m);
	return err;
}

FINDINGS(torch_memory) = { .name = "torch-memory", .find = find };
