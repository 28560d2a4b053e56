/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data of formats that show stacks (folded, flame, pprof, speedscope): a tree of calls for each kind of event with
 * a stack. Kinds are found by the names of their fields, so older and newer traces work, too.
 */
#pragma once

#include "export/calls.h"
#include "export/export.h"

struct profile_kind {
	const char *name; /* "on-cpu" */
	const char *title; /* "On-CPU" */
	const char *event, *stack; /* kind of event, its field of unit `stack` */
	enum {
		PROFILE_EVENTS,
		PROFILE_GIL_WAITS,
		PROFILE_GIL_SEGMENTS,
		PROFILE_TORCH,
	} from; /* single events, or what model/gil.h or model/torch.h derives */
	const char *doc; /* what is summed, and how to record it */
};

struct stack_profile {
	struct profile_kind kind;
	const struct schema_event *event; /* NULL: the trace has no such kind, or without stacks */
	const struct schema_field *stack;
	const struct schema_field *period; /* weight of an event that is not a span; NULL: 1 */
	const struct schema_field *reason; /* of sample_off: why the thread was off a CPU; NULL: another event */
	bool in_ns; /* values are ns; false: they count events */
	u64 events, total; /* in the tree; blame counts the segments of waits */
	u64 without_stack; /* part of total without a stack */
	u64 min_ns; /* nodes with less were merged into their callers (profiles__limit); 0: none */
	struct call_tree tree;
};

#define PROFILES 5

struct profiles {
	const struct export *e;
	struct call_functions functions;
	struct map processes; /* u32 pid -> u32 number of its function plus one */
	struct stack_profile list[PROFILES];
	u32 n;
	char name[128]; /* of a kind that is not predefined */
};

/* Can the choice be shown (NULL: all)? Returns 0, or -EINVAL and in e->why a message that lists the valid ones. */
int profiles__check(struct export *e);
/* Returns 0 or negative errno; call profiles__free in both cases. */
int profiles__init(struct profiles *p, const struct export *e, bool lines);
int profiles__add(struct profiles *p, const struct rows *rows);
/* Call after all rows: adds what needs the whole trace. */
int profiles__finish(struct profiles *p);
/* For profiles_torch.c: returns the node of a process beneath the root, adds an amount to a node, reads the calls. */
int profiles__process(struct profiles *p, struct call_tree *t, u32 pid, u32 *node);
void profiles__add_amount(struct stack_profile *profile, u32 node, u64 amount);
int profiles__add_torch(struct profiles *p, struct stack_profile *profile);
/*
 * Merges the smallest nodes of each tree into their callers, so that at most `nodes` of them are left, and drops
 * functions without nodes. After profiles__finish; nothing can be added from then on. 0 or -ENOMEM.
 */
int profiles__limit(struct profiles *p, u32 nodes);
void profiles__free(struct profiles *p);
/* begin and rows for formats whose data is a struct profiles; end for those that write all profiles by `put`. */
int profiles__begin(struct export *e);
int profiles__rows(struct export *e, const struct rows *rows);
int profiles__end(struct export *e, bool only_one, int (*put)(struct export *e, const struct profiles *p));
/* Writes a note if nothing can be shown or more than one kind could be; "" if there is no need. */
void profiles__note(const struct profiles *p, bool only_one, char *buf, size_t size);
/* Returns the first profile with events, NULL if there is none. */
const struct stack_profile *profiles__first(const struct profiles *p);
