/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Groups cells of the wait profile that make one finding: of one process, kind and function of the user's code. */
#pragma once

#include "findings/finding.h"

struct group {
	u32 pid;
	u32 code; /* number of the cells' function (struct stack_frame.code), 0: none; with GROUPS_KIND their kind */
	u32 threads;
	u64 ns, wall_ns, times;
	u64 delay_ns; /* of ns: runnable after these waits */
	const u32 *cells; /* indices of its cells */
	u32 n;
};

struct groups {
	struct group *list; /* by ns, the largest first */
	u32 n;
	u32 *cells;
	u32 n_cells;
};

enum grouping {
	GROUPS_CODE, /* by the code that waited */
	GROUPS_HOLDER, /* by the code that held the lock or GIL */
	GROUPS_PROCESS, /* by process alone */
	GROUPS_KIND, /* by process and kind */
};

#define FINDING_BIT(kind) (1ull << (kind))

/*
 * Makes the groups of one kind, or of several that belong together (FINDING_BIT of each). A thread counts for a group
 * if it lost a twentieth of its time in it, and not less than a quarter of the share that all of them lost: a group's
 * figures are sums over these threads. 0 or -ENOMEM.
 */
int groups__make(struct groups *g, const struct finding_input *in, u64 kinds, enum grouping by);
void groups__free(struct groups *g);

/* Returns the value of a field with most time in the group's cells. */
enum group_field { GROUP_STACK, GROUP_REASON, GROUP_OBJECT, GROUP_CAUSED_BY, GROUP_CAUSED_BY_STACK };
struct group_most {
	u64 value; /* GROUP_CAUSED_BY: pid << 32 | tid */
	u64 ns, times;
};
struct group_most group__most(const struct finding_input *in, const struct group *g, enum group_field field);

/* Calls fn for each finding of a kind: by code, and by process if no code took enough time. 0 or negative errno. */
int groups__each_finding(const struct finding_input *in, enum finding_kind kind, struct findings *out,
			 int (*fn)(const struct finding_input *in, const struct group *g, struct finding *f, void *arg),
			 void *arg);

/* Names the thread of another process that ended most of the group's waits, if there is one. */
void group__add_ender(const struct finding_input *in, const struct group *g, struct finding *f);
/* findings.c gives the waits of the group (all cells but those of computing) this kind after all modules have run. */
void group__set_waits_kind(const struct finding_input *in, const struct group *g, enum finding_kind kind);
/* The same, and sets the finding's kind. */
void group__set_kind(const struct finding_input *in, const struct group *g, struct finding *f, enum finding_kind kind);
/* Makes the finding one about waits for something to do. */
void group__set_idle(const struct finding_input *in, const struct group *g, struct finding *f);
/* Adds a finding with the group's times, code, call and stack; NULL: no memory, or it took too little time. */
struct finding *group__add_finding(const struct finding_input *in, const struct group *g, enum finding_kind kind,
				   struct findings *out);

/* Appends a clause to the finding's detail. */
void finding__add_detail(struct finding *f, const char *text);
/* Raises the weight, because it is known what the thread waited for. A finding of an idle thread keeps its weight. */
void finding__waits_for_known(struct finding *f);
