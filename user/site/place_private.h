/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internal to the files that implement place.h. */
#pragma once

#include "site/decoder.h"
#include "site/place.h"

/* What is known of a function that is called. */
enum callee {
	CALLEE_UNKNOWN, /* may run any code */
	CALLEE_HARMLESS, /* returns and calls no code of the user */
	CALLEE_DIES, /* ends the process */
	CALLEE_UNWINDS, /* never returns: an exception begins or continues */
};

struct callees;

/* NULL: no memory */
struct callees *callees__new(struct elf *elf);
void callees__free(struct callees *c);
enum callee callees__at(const struct callees *c, u64 addr);
/* For the function whose address the loader stores at slot. */
enum callee callees__slot(const struct callees *c, u64 slot);
/* The part of a function that the compiler split off (NAME.cold) around addr. */
bool callees__cold(const struct callees *c, u64 addr, u64 *start, u64 *size);
/* Is the address of a function's symbol in (from, to]? */
bool callees__symbol_between(struct callees *c, u64 from, u64 to);
enum callee callee__by_name(const char *name);

/* Reasons why a function has no probe, or an expensive one. */
#define WHY_STEPPED	     "its first instructions are single-stepped"
#define WHY_STEPPED_JUMP     "its first instructions are single-stepped, up to one that jumps or calls"
#define WHY_STEPPED_STACK    "its first instructions are single-stepped, up to one that moves the stack pointer"
#define WHY_STEPPED_ARGUMENT "its first instructions are single-stepped, up to one that changes an argument"
#define WHY_UNKNOWN_INSN     "an instruction of it is not known"
#define WHY_ENTERED	     "it could be entered behind its first instruction"
#define WHY_JUMPED_TO	     "a jump goes to where a probe would be emulated"
#define WHY_SHADOW_STACK     "an emulated call would break a shadow stack"
#define WHY_EXIT_STEPPED     "a way out has no instruction on it that is emulated"
#define WHY_SAME_PLACE	     "its entry and its exits can't be distinguished"
#define WHY_MANY_EXITS	     "it has too many ways out"
#define WHY_MANY_UNWINDS     "it has too many ways out by an exception"
#define WHY_UNWIND	     "a way out by an exception has no instruction on it that is emulated"
#define WHY_OVERLAP	     "two of its instructions overlap"
#define WHY_INDIRECT	     "it has an indirect jump whose targets are not known"
#define WHY_LEAVES_STACK     "a jump leaves it with a stack that is not understood"
#define WHY_LEAVES_CODE	     "a jump leaves it into code that is not known"
#define WHY_TABLES	     "its exception tables are invalid"
#define WHY_PAD		     "it has a landing pad that is not in it"
#define WHY_PAST_END	     "it runs on past its end"
#define WHY_TOO_LARGE	     "it is too large"
#define WHY_PARTS	     "it has too many parts"
#define WHY_JUMP_TABLES	     "its jump tables are too large"
#define WHY_NO_SIZE	     "its size is not known"
#define WHY_NO_CODE	     "its code is not in the file"

#define NONE	  0xffffffffu
#define PARTS_MAX PLACE_PARTS_MAX

enum node_role {
	NODE_PLAIN,
	NODE_FOREIGN, /* a call that may run any code */
	NODE_EXIT, /* leaves the function: a return or a jump to another function */
	NODE_UNWIND, /* leaves the function by an exception */
	NODE_DEAD, /* execution ends here */
};

struct frame { /* what is known of the stack and frame pointers */
	bool sp_known, bp_known;
	s32 sp, bp; /* bytes below the stack pointer at the entry */
};

struct node {
	struct insn insn;
	u8 role; /* enum node_role */
	bool not_code; /* represents a way out, not an instruction */
	bool pad; /* a landing pad */
	struct frame frame;
	u32 next, target; /* numbers of nodes */
	u32 extra, n_extra; /* more targets, in graph.extra */
	u32 before; /* the node from which it was first reached, or NONE */
};

struct part {
	u64 addr, size;
	const u8 *code;
	u32 *map; /* by byte: node + 1, or MAP_INSIDE */
};

/* A function's control-flow graph. */
struct graph {
	struct node *nodes;
	u32 n;
	u32 *extra;
	u32 n_extra;
	struct part parts[PARTS_MAX];
	u32 n_parts;
	bool pads; /* has landing pads */
	const char *why; /* why the function is not understood; NULL: it is */
};

struct placer {
	struct elf *elf;
	struct decoder *decoder;
	struct callees *callees;
	bool shadow_stack;
};

/* Returns 0, also if g->why is set, or -ENOMEM; free g in any case. */
int graph__build(struct placer *p, struct graph *g, u64 addr, u64 size);
void graph__free(struct graph *g);
/* The node of an address, or NONE. */
u32 graph__at(const struct graph *g, u64 addr);

struct cut_request {
	enum node_role sink; /* NODE_EXIT or NODE_UNWIND */
	u64 after; /* sites in [entry, after] are excluded */
	bool calls; /* may a site be a call? */
	bool stepped; /* may a site be expensive? */
	bool foreign_after; /* may foreign code run after the site? */
};

/*
 * The fewest sites such that every path from the entry (or a landing pad) to a sink passes exactly one of them, once.
 * Returns their number, 0 if there are none, -1 if there would be more than max, -ENOMEM. *sinks: a sink can be
 * reached.
 */
int cut__find(const struct graph *g, const struct cut_request *r, u32 *nodes, u32 max, bool *sinks);
