/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the formats made of stacks show (folded, flame, pprof, speedscope): for each
 * kind of event that says where time went, a tree of calls. Kinds are found by the
 * names of their fields, so an older or newer trace has what it has.
 */
#ifndef SONDE_EXPORT_PROFILES_H
#define SONDE_EXPORT_PROFILES_H

#include "export/calls.h"
#include "export/export.h"

struct profile_kind {
	const char *name; /* "on-cpu" */
	const char *title; /* "On-CPU" */
	const char *event, *stack; /* kind of event, its field of unit `stack` */
	enum {
		PROFILE_EVENTS,
		PROFILE_GIL_WAITS,
		PROFILE_GIL_SEGMENTS
	} from; /* events as they are, or what model/gil.h says */
	const char *doc; /* what is added up, and how it comes into a trace */
};

struct profile {
	struct profile_kind kind;
	const struct schema_event *event; /* NULL: the trace has no such kind, or it has no stacks */
	const struct schema_field *stack;
	const struct schema_field *period; /* weight of an event that is not a span; NULL: 1 */
	bool in_ns; /* else events are counted */
	u64 events, total; /* in the tree; of blame, the parts that waits are cut into */
	u64 without; /* of total: no stack was recorded */
	struct call_tree tree;
};

#define PROFILES 4

struct profiles {
	const struct export *e;
	struct call_functions functions;
	struct map processes; /* u32 pid -> u32 number of its function plus one */
	struct profile list[PROFILES];
	u32 n;
	char name[128]; /* of a kind that is none of the known ones */
};

/* Can `option`, of --event, be shown? NULL: all. -EINVAL with a message in why that names what can. */
int profiles__check(const struct trace *t, const char *option, char *why, size_t len);
/* 0 or negative errno; free it in both cases. */
int profiles__init(struct profiles *p, const struct export *e, bool lines);
int profiles__add(struct profiles *p, const struct rows *rows);
/* After all rows: what has to be concluded from all of the trace. */
int profiles__finish(struct profiles *p);
void profiles__free(struct profiles *p);
/* begin and rows of formats whose data is a struct profiles, and the end of those that show all of it: put writes it. */
int profiles__begin(struct export *e);
int profiles__rows(struct export *e, const struct rows *rows);
int profiles__end(struct export *e, int (*put)(struct export *e, const struct profiles *p));
/* What to say where nothing is to be shown, or more than one is; "" if there is no need. */
void profiles__note(const struct profiles *p, bool only_one, char *buf, size_t size);
/* The first that has something in it; NULL: none. */
const struct profile *profiles__first(const struct profiles *p);

#endif
