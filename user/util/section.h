/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a BPF program's section name:
 *	span/libcudart.so:cudaMemcpy,cudaMemcpyAsync	span+all/libcudart.so:cudaGet*
 * A semicolon in the list of functions starts the next group. LIB may be several libraries: libcufft.so|libcurand.so
 *	entry/LIB:FUNCTIONS  placed/LIB:FUNCTIONS  site/NAME  tp_btf/NAME  iter/NAME  clock/cpu  called/MAP
 *	?tp_btf/NAME
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum section_kind {
	SECTION_OTHER,
	SECTION_SPAN,
	SECTION_ENTRY,
	SECTION_PLACED, /* a call whose ends are probed inside of the function's code */
	SECTION_SITE,
	SECTION_TRACEPOINT, /* tp_btf/, or fexit/ for the return of a function of the kernel */
	SECTION_CLOCK, /* a tick of a clock on each CPU */
	SECTION_ITER,
	SECTION_CALLED, /* runs by tail call from span programs; the name is that of the map for it */
};

struct section {
	enum section_kind kind;
	bool on_demand; /* begins with '?': the family's host code attaches or runs it */
	char option[32]; /* the family's option that loads it; "": always loaded */
	char library[256]; /* prefix of the file name, or several of which one is; "": none */
	const char *rest; /* functions, or the name after the slash, in the section's name */
};

/* Returns whether the program runs at probes in mapped files. */
static inline bool section__is_in_file(const struct section *s)
{
	return s->kind >= SECTION_SPAN && s->kind <= SECTION_SITE;
}

/* 0 or -EINVAL: a malformed name of one of sonde's own kinds. */
int section__parse(struct section *out, const char *name);
/* Copies the next function of the list at *list into buf and moves *list past it; false: no more. */
bool section__next_function(const char **list, char *buf, size_t len);
/* Returns whether an entry of the section's list, a glob, matches the function. group: that of the first match. */
bool section__has(const struct section *s, const char *function, unsigned int *group);
/* Returns whether one of the libraries, separated by |, is the start of a file's name. */
bool section__is_library(const char *libraries, const char *name);
/* Returns whether the file at `path` is the section's library, by its name. */
bool section__matches_library(const struct section *s, const char *path);
/*
 * Returns whether a span must not be declared there: a return probe on C++ code aborts the target when an exception
 * passes it, and in libc it breaks thread cancellation.
 */
bool section__refuses_returns(const char *name);
