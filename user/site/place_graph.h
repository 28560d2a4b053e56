/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between place_graph.c, which follows the control flow, and place_pads.c, which follows exceptions. */
#pragma once

#include "site/place_private.h"

#define MAP_INSIDE 0xffffffffu

struct call_site {
	u64 start, size, pad;
};

struct builder {
	struct placer *p;
	struct graph *g;
	u64 entry;
	u32 *work; /* a stack of nodes to visit */
	u32 n_work;
	struct call_site *calls;
	u32 n_calls;
	u32 parts_seen; /* number of parts whose call sites have been read */
	int error;
};

/* Marks the function as not understood. The first reason is kept. */
void builder__refuse(struct builder *b, const char *why);
/* The part that an address lies in, NULL: none */
struct part *graph__part(struct graph *g, u64 addr);
/* NULL: refused, or no memory */
struct part *builder__add_part(struct builder *b, u64 addr, u64 size);
/* The node of an address in a part; decoded if it is new. NONE: refused. */
u32 builder__visit(struct builder *b, struct part *part, u64 addr, u32 before, struct frame frame);
/* Follows the control flow from all nodes that have to be visited. */
void builder__discover(struct builder *b);
/* Finds code that is reached by exceptions; it may contain calls with further landing pads. */
void builder__find_pads(struct builder *b);
