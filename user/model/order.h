/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events in order of time (a span's end; of equal ones, the one that began later first).
 *
 * A file has its events by chunk and within a chunk by kind, and the writer holds no event for longer than a
 * second: so two seconds of events, sorted, are in order. A trace with more events than fit into the memory limit
 * comes out nearly in order.
 */
#ifndef SONDE_MODEL_ORDER_H
#define SONDE_MODEL_ORDER_H

#include "model/view.h"

struct order;

/* fn gets each event as a record, which is gone after the call; it returns 0 or negative errno. NULL: no memory. */
struct order *order__new(int (*fn)(const struct view *v, void *arg), void *arg);
/* Takes a copy of all rows and hands on what is old enough. 0 or negative errno, also fn's. */
int order__add(struct order *o, const struct rows *rows);
/* Hands on the rest. 0 or negative errno. */
int order__finish(struct order *o);
void order__free(struct order *o);

#endif
