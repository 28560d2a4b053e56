/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spans of one kind and thread, looked up by time. */
#pragma once

#include "core/types.h"

struct listed_span {
	u64 from, to; /* ns */
	u32 kind, detail, thread; /* the meaning depends on the list */
};

struct span_list {
	struct listed_span *spans; /* by start and, once sorted, by end, too */
	u32 n;
	u32 last_found; /* index that span_list__next found last */
};

/* 0 or -ENOMEM */
int span_list__add(struct span_list *l, const struct listed_span *span);
/* Sorts by start and cuts overlaps. */
void span_list__sort(struct span_list *l);
/* Removes the spans that end by `time`. */
void span_list__drop_before(struct span_list *l, u64 time);
/* Returns the index of the first span that ends after `time`; n: there is none. */
u32 span_list__find(const struct span_list *l, u64 time);
/* Returns the span at `time` or NULL, and lowers *until to where that changes. */
const struct listed_span *span_list__at(const struct span_list *l, u64 time, u64 *until);
/* The same, faster where the times of successive calls rise. */
const struct listed_span *span_list__next(struct span_list *l, u64 time, u64 *until);
void span_list__free(struct span_list *l);
