/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the user's code called: the function of a library in which most of its time was, for the line of the user's code
 * alone does not state what happened there.
 */
#pragma once

#include "model/stacks.h"
#include "util/map.h"

struct callees {
	const struct stacks *stacks;
	u64 ns;
	u32 stacks_added;
	bool below_native; /* the user's code is native, so functions of the C and C++ libraries count */
	struct map sums; /* of ns, by function */
};

void callees__init(struct callees *c, const struct stacks *stacks);
/* Adds the time of a stack in which the frame `user` is the innermost of the user's code. */
void callees__add(struct callees *c, u32 stack, u32 user, u64 ns);
struct callee {
	double percent; /* its part of this time, with `outer` that one's; 0: there is no such function */
	bool is_native;
	bool is_package; /* of an installed package */
	const char *words; /* what it does, by a rule; NULL: no rule states it */
	char name[128]; /* "traceback.format_exc" */
	char outer[80]; /* the library's function that the user's code called, "yaml's safe_load"; "": the same */
};

/*
 * Finds the deepest function that had 80% of this time or more; one for which a rule has words precedes it, also with
 * half of the time. only_packages: only those of installed packages count. Frees c.
 */
void callees__finish(struct callees *c, bool only_packages, struct callee *callee);
#define CALLEE_TEXT 320
/* Writes the deepest function: "TLS handshakes: ssl.SSLSocket.do_handshake". Returns buf. */
const char *callee__deepest(const struct callee *callee, char *buf, size_t size);
/* Writes both functions: "yaml's safe_load, mostly in Scanner.fetch_more_tokens". Returns buf. */
const char *callee__text(const struct callee *callee, char *buf, size_t size);
