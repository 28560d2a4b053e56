/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events in order of time (a span's end; of equal ones, the one that began later first).
 *
 * A file has its events by chunk and in a chunk by kind, and the writer holds no event for longer than a second. So two
 * seconds of events, sorted, are in order. A trace with more events than fit into the memory limit is only nearly in
 * order.
 */
#pragma once

#include "model/view.h"

struct order;

/* fn gets each event as a record, valid during the call, and returns 0 or negative errno. NULL: no memory. */
struct order *order__new(int (*fn)(const struct view *v, void *arg), void *arg);
/* Copies all rows and emits what is old enough. 0 or negative errno, also fn's. */
int order__add(struct order *o, const struct rows *rows);
/* As order__add, but only for rows that begin in [from, to]: spans by their start, other events by their time. */
int order__add_begun(struct order *o, const struct rows *rows, u64 from, u64 to);
/* Emits the rest. 0 or negative errno. */
int order__finish(struct order *o);
void order__free(struct order *o);
