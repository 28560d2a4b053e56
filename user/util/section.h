/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A BPF program's section name, taken apart:
 *	span/libcudart.so:cudaMemcpy,cudaMemcpyAsync	span+all/libcudart.so:cudaGet*
 * where a semicolon in the list of functions starts the next group of them.
 *	entry/LIB:FUNCTIONS  placed/LIB:FUNCTIONS  site/NAME  tp_btf/NAME   iter/NAME  clock/cpu  called/MAP  ?tp_btf/NAME
 */
#ifndef SONDE_UTIL_SECTION_H
#define SONDE_UTIL_SECTION_H

#include <stdbool.h>
#include <stddef.h>

enum section_kind {
	SECTION_OTHER,
	SECTION_SPAN,
	SECTION_ENTRY,
	SECTION_PLACED, /* a call whose ends are probed where the function's code has them */
	SECTION_SITE,
	SECTION_TRACEPOINT, /* tp_btf/ */
	SECTION_CLOCK, /* a tick of a clock on each CPU */
	SECTION_ITER,
	SECTION_CALLED, /* by tail call from span programs; the name is that of the map that leads to it */
};

struct section {
	enum section_kind kind;
	bool on_demand; /* begins with '?': its family's host code attaches or runs it */
	char option[32]; /* loaded only with this option of its family; "" always */
	char library[64]; /* a file name begins like this; "" if none */
	const char *rest; /* functions, or the name after the slash; points into the section's name */
};

/* 0 or -EINVAL: a kind of sonde's own that is malformed. */
int section__parse(struct section *out, const char *name);
/* Takes the next function of the list at *list into buf; false: no more. */
bool section__next_function(const char **list, char *buf, size_t len);
/* Does an entry in the section's list name the function or, as a glob, match it? group: of the first one that does. */
bool section__has(const struct section *s, const char *function, unsigned int *group);
/* Does the file called path (its last component) belong to the section's library? */
bool section__matches_library(const struct section *s, const char *path);
/*
 * A return probe on C++ code aborts the target when an exception passes it, in
 * libc it breaks thread cancellation: a span declared there is refused.
 */
bool section__refuses_returns(const char *name);

#endif
