/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spans of one thread, of one kind, looked up by time. */
#ifndef SONDE_MODEL_SPAN_LIST_H
#define SONDE_MODEL_SPAN_LIST_H

#include "core/types.h"

struct listed_span {
	u64 from, to; /* ns */
	u32 what, of, by; /* as the list's owner uses them */
};

struct span_list {
	struct listed_span *spans; /* by their start, and then mostly by their end */
	u32 n;
};

/* 0 or -ENOMEM */
int span_list__add(struct span_list *l, const struct listed_span *span);
/* By start; overlaps are cut. */
void span_list__sort(struct span_list *l);
/* The first that ends after `time`, n: none does */
u32 span_list__find(const struct span_list *l, u64 time);
/* The one at `time`, NULL: none; *until is brought forward to where that changes. */
const struct listed_span *span_list__at(const struct span_list *l, u64 time, u64 *until);
void span_list__free(struct span_list *l);

#endif
