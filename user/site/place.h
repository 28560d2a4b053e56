/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the sites at which to probe the entry and the ends of a function: docs/placement.md. It reads only the object's
 * file, which is untrusted. It refuses a function that it does not understand, and returns the reason.
 */
#pragma once

#include "elf/elf.h"

enum place_kind {
	PLACE_ENTRY,
	PLACE_EXIT, /* every path that returns passes exactly one of these, once */
	PLACE_UNWIND, /* an exception leaves the function here */
};

enum place_cost {
	PLACE_EMULATED, /* the kernel emulates the instruction: a hit costs one trap */
	PLACE_STEPPED, /* a hit costs a trap and a single step: in a virtual machine, over ten times as much */
};

struct place_site {
	u64 addr;
	u8 kind; /* enum place_kind */
	u8 cost; /* enum place_cost */
	/*
	 * How to find the stack pointer that the function had at its entry: it is the frame pointer at this site
	 * (by_frame_pointer) or the stack pointer at this site, plus `above`.
	 */
	bool by_frame_pointer;
	u32 above; /* bytes, a multiple of 8 */
};

#define PLACE_SITES_MAX 64
#define PLACE_PARTS_MAX 6

struct place_part {
	u64 addr, size;
};

struct placement {
	struct place_site sites[PLACE_SITES_MAX]; /* the entry, the exits, then the unwinding sites */
	u32 n;
	struct place_part parts[PLACE_PARTS_MAX]; /* the function's code, as far as it was examined */
	u32 n_parts;
	bool exits; /* `sites` has a site on every path that returns */
	const char *entry_why; /* why the entry is expensive; NULL: it is not */
	const char *exits_why; /* why exits is false or some exits are expensive; NULL: neither */
	/* why an exception may leave without a site on its path; NULL: none can that runs code of the function */
	const char *unwind_why;
};

struct placer;

/*
 * Returns NULL without memory. The placer must not be used after elf is closed. shadow_stack: result of
 * place__shadow_stack.
 */
struct placer *placer__new(struct elf *elf, bool shadow_stack);
void placer__free(struct placer *p);
/*
 * Finds the site of the entry. It never fails: in the worst case the site is the function's first instruction, and *why
 * says why that is expensive. size 0: unknown.
 */
void placer__entry(struct placer *p, u64 addr, u64 size, struct place_site *out, const char **why);
/* Finds all sites of a function. Returns 0 or -ENOMEM; *out has the reason for sites that are missing. */
int placer__function(struct placer *p, u64 addr, u64 size, struct placement *out);
/* Does the kernel emulate the instruction at addr? */
bool placer__emulated(struct placer *p, u64 addr);
/* Writes the instruction at addr as text, "?" if there is none, and returns buf. */
const char *placer__text(struct placer *p, u64 addr, char *buf, size_t len);

/* Is the object marked as compatible with shadow stacks (CET)? */
bool place__marked_shadow_stack(struct elf *elf);
/*
 * Returns whether a process that maps the object may run with a shadow stack on this machine. If so, calls must not be
 * probed: the kernel's emulation does not push to the shadow stack, so the return from the call would fault.
 */
bool place__shadow_stack(struct elf *elf);
