/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the sites at which to probe the entry and the ends of a function: docs/placement.md. Uses only the file,
 * which is untrusted; a function that is not understood is refused with the reason.
 */
#ifndef SONDE_SITE_PLACE_H
#define SONDE_SITE_PLACE_H

#include "elf/elf.h"

enum place_kind {
	PLACE_ENTRY,
	PLACE_EXIT, /* every path that returns passes exactly one of these, once */
	PLACE_UNWIND, /* an exception leaves the function here */
};

enum place_cost {
	PLACE_EMULATED, /* one trap */
	PLACE_STEPPED, /* a trap and a single step; in a virtual machine more than ten times as slow */
};

struct place_site {
	u64 addr;
	u8 kind; /* enum place_kind */
	u8 cost; /* enum place_cost */
	/*
	 * The stack pointer at the function's entry equals the value of this register here + above: the frame pointer
	 * if true, else the stack pointer.
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
	bool exits; /* sites has all exits that return */
	const char *entry_why; /* why the entry is expensive; NULL: it is not */
	const char *exits_why; /* why exits is false or some exits are expensive; NULL: neither */
	/* why an exception may leave unobserved; NULL: it can't, or not through code of this function */
	const char *unwind_why;
};

struct placer;

/* For the machine of elf, and valid as long as elf. shadow_stack: see place__shadow_stack. NULL: no memory. */
struct placer *placer__new(struct elf *elf, bool shadow_stack);
void placer__free(struct placer *p);
/* Only the entry. Never fails: in the worst case the site is the function's first instruction. size 0: unknown. */
void placer__entry(struct placer *p, u64 addr, u64 size, struct place_site *out, const char **why);
/* All sites (docs/placement.md). Returns 0 or -ENOMEM. */
int placer__function(struct placer *p, u64 addr, u64 size, struct placement *out);
/* Does the kernel emulate the instruction at addr? */
bool placer__emulated(struct placer *p, u64 addr);
/* The text of the instruction at addr, "?" if there is none. */
const char *placer__text(struct placer *p, u64 addr, char *buf, size_t len);

/* Is the object marked as compatible with shadow stacks (CET)? */
bool place__marked_shadow_stack(struct elf *elf);
/*
 * May a process that maps the object run with a shadow stack here? The return from an emulated call would fault
 * there.
 */
bool place__shadow_stack(struct elf *elf);

#endif
