/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which call of an operator created which backward node, by the sequence number that both have, while a trace is
 * exported in order of time. And the training steps.
 */
#pragma once

#include "export/export.h"
#include "model/view.h"
#include "util/map.h"

struct torch_loop;

/* Where an event was drawn */
struct drawn_place {
	u32 pid, tid;
	u64 start;
};

struct torch_flows {
	struct map forward; /* operators whose backward nodes may follow */
};

enum torch_flow_end { TORCH_FLOW_NONE, TORCH_FLOW_BEGINS, TORCH_FLOW_ENDS };

void torch_flows__init(struct torch_flows *f);
void torch_flows__free(struct torch_flows *f);
/* Is this event a backward node? */
bool torch_flows__is_node(const struct view *v);
/* Returns the sequence number of an operator's call or backward node; -1: none, or another kind of event. */
s64 torch_flows__sequence(const struct view *v);
/*
 * Adds an event that was drawn at this place. Returns TORCH_FLOW_BEGINS if its backward node may follow,
 * TORCH_FLOW_ENDS if it is the backward node of the call at *from, TORCH_FLOW_NONE, or -ENOMEM.
 */
int torch_flows__add(struct torch_flows *f, const struct view *v, const struct drawn_place *at,
		     struct drawn_place *from);

/* Calls on_loop for each thread with training steps. 0 or negative errno. */
int torch_flows__each_loop(const struct export *e, int (*on_loop)(const struct torch_loop *l, void *arg), void *arg);
