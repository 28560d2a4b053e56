// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/children.h"

#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "model/names.h"
#include "model/query.h"
#include "output/table.h"

struct children {
	struct map pids; /* u32 -> u64: ns of the waits that it ended */
	u64 ns; /* the sum */
};

/* The samples of all children in a function */
struct child_code {
	u64 ns, kernel_ns, fault_ns;
	u32 frame;
};

static void collect(const struct finding_input *in, const struct group *g, struct children *c)
{
	for (u32 i = 0; i < g->n; i++) {
		u32 pid = profile__key(in->profile, g->cells[i])->caused_by.pid;
		u64 *sum = pid && pid != g->pid ? map__get(&c->pids, &pid) : NULL;
		u64 ns = profile__cell(in->profile, g->cells[i])->ns;

		if (!sum)
			continue;
		*sum += ns;
		c->ns += ns;
	}
}

/* Returns the name that more than half of the processes have, which is the only candidate of a majority vote. */
static const char *program_of(const struct finding_input *in, const struct children *c, char *buf, size_t size)
{
	char other[64];
	u32 votes = 0, n = 0;

	*buf = '\0';
	MAP_EACH_ENTRY(const u64 *ns, const u32 *pid, &c->pids) {
		const char *title = *ns ? names__title(in->q->names, other, sizeof(other), *pid, *pid) : NULL;

		if (!votes)
			snprintf(buf, size, "%s", title ?: "");
		votes += !title ? 0 : strcmp(title, buf) ? -1 : 1;
	}
	MAP_EACH_ENTRY(const u64 *ns, const u32 *pid, &c->pids) {
		const char *title = *ns ? names__title(in->q->names, other, sizeof(other), *pid, *pid) : NULL;

		n += title && !strcmp(title, buf);
	}
	if (2 * n <= c->pids.n)
		*buf = '\0';
	return buf;
}

/* Returns the user's function with most samples of the children; ns 0: there is none. all_ns: of all samples. */
static struct child_code most_sampled(const struct finding_input *in, const struct children *c, u64 *all_ns)
{
	struct child_code most = { 0 };
	struct map codes;

	*all_ns = 0;
	map__init(&codes, sizeof(u32), sizeof(struct child_code));
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		u32 frame = stack_parts__of(in->stacks, key->stack).user;
		const struct stack_frame *f = stacks__frame(in->stacks, frame);
		struct child_code *code;

		if (!map__find(&c->pids, &key->thread.pid))
			continue;
		*all_ns += s->ns;
		code = f ? map__get(&codes, &f->code) : NULL;
		if (!code)
			continue;
		code->ns += s->ns;
		code->kernel_ns += s->kernel_ns;
		code->fault_ns += s->fault_ns;
		code->frame = frame;
		if (code->ns > most.ns)
			most = *code;
	}
	map__free(&codes);
	return most;
}

/* Levels of processes that wait for processes of their own */
#define LEVELS_MAX 4

static void add_descendants(const struct finding_input *in, u32 parent, struct map *pids)
{
	u32 n = 0;

	for (u32 level = 1; level < LEVELS_MAX && pids->n > n; level++) {
		n = pids->n;
		MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
			u32 pid = key->caused_by.pid;

			if (cell->kind == FINDING_CHILD && pid && pid != parent && map__find(pids, &key->thread.pid))
				map__get(pids, &pid);
		}
	}
}

bool children__slept(const struct finding_input *in, const struct group *g)
{
	u32 stack = (u32)group__most(in, g, GROUP_STACK).value;
	struct children c = { 0 };
	u64 slept = 0, worked = 0;

	if (stack_parts__of(in->stacks, stack).serves)
		return false;
	map__init(&c.pids, sizeof(u32), sizeof(u64));
	collect(in, g, &c);
	add_descendants(in, g->pid, &c.pids);
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		if (!map__find(&c.pids, &key->thread.pid))
			continue;
		if (IS_ONE_OF(cell->kind, FINDING_SLEEP, FINDING_IDLE, FINDING_ASLEEP))
			slept += cell->ns;
		else if (cell->kind != FINDING_CHILD || !key->caused_by.pid)
			worked += cell->ns;
	}
	map__free(&c.pids);
	return 2 * c.ns > g->ns - g->delay_ns && slept > 2 * worked;
}

void children__add(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct children c = { 0 };
	struct finding_code where = { 0 };
	struct child_code most;
	char text[320], what[128], program[64];
	u64 all_ns;

	map__init(&c.pids, sizeof(u32), sizeof(u64));
	collect(in, g, &c);
	if (c.pids.n > 1 && 2 * c.ns > g->ns - g->delay_ns) {
		program_of(in, &c, program, sizeof(program));
		most = most_sampled(in, &c, &all_ns);
		snprintf(text, sizeof(text), "%u processes%s%s%s ended these waits", c.pids.n,
			 *program ? ", mostly " : "", program, *program ? "," : "");
		finding__add_detail(f, text);
		if (most.ns && 2 * most.ns >= all_ns) {
			finding_code__fill(&where, in->stacks, most.frame);
			snprintf(what, sizeof(what), "%.0f%% of their CPU time was", table__percent(most.ns, all_ns));
			finding_code__write(&where, " in ", what, text, sizeof(text) - 32);
			strcat(text, 2 * most.fault_ns >= most.ns	  ? ", mostly in page faults" :
				     100 * most.kernel_ns >= 60 * most.ns ? ", mostly in the kernel" :
									    "");
			finding__add_detail(f, text);
		}
	}
	map__free(&c.pids);
}
