/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where in a function to probe its beginning and its ends: docs/placement.md.
 * Works on the file alone; the file is untrusted, and a function that is not
 * understood is refused with the reason.
 */
#ifndef SONDE_SITE_PLACE_H
#define SONDE_SITE_PLACE_H

#include "elf/elf.h"

enum place_kind {
	PLACE_ENTRY,
	PLACE_EXIT, /* every way out that returns passes exactly one of these, once */
	PLACE_UNWIND, /* an exception leaves the function here */
};

enum place_cost {
	PLACE_EMULATED, /* a trap */
	PLACE_STEPPED, /* and a single step, more than ten times that in a virtual machine */
};

struct place_site {
	u64 addr;
	u8 kind; /* enum place_kind */
	u8 cost; /* enum place_cost */
	/* The stack pointer at the function's entry was this register's value here + above: the frame pointer, else the stack pointer. */
	bool by_frame_pointer;
	u32 above; /* bytes, a multiple of 8 */
};

#define PLACE_SITES_MAX 64
#define PLACE_PARTS_MAX 6

struct place_part {
	u64 addr, size;
};

struct placement {
	struct place_site sites[PLACE_SITES_MAX]; /* the entry, exits, then unwinding */
	u32 n;
	struct place_part parts[PLACE_PARTS_MAX]; /* the function's code, as far as it was looked at */
	u32 n_parts;
	bool exits; /* every way out that returns is in it */
	const char *entry_why; /* the entry is expensive, NULL: it is not */
	const char *exits_why; /* exits is false or some are expensive, NULL: neither */
	const char *unwind_why; /* an exception may leave unseen, NULL: it can't, or not by code of this function */
};

struct placer;

/* Takes elf's machine. shadow_stack: see place__shadow_stack. Lives no longer than elf. NULL: no memory. */
struct placer *placer__new(struct elf *elf, bool shadow_stack);
void placer__free(struct placer *p);
/* The entry alone: never fails, it is the function's first instruction in the worst case. size 0: not known. */
void placer__entry(struct placer *p, u64 addr, u64 size, struct place_site *out, const char **why);
/* All of them (docs/placement.md). 0 or -ENOMEM. */
int placer__function(struct placer *p, u64 addr, u64 size, struct placement *out);
/* Is the instruction at addr one that the kernel emulates? */
bool placer__emulated(struct placer *p, u64 addr);
/* The instruction at addr as text, "?" if there is none. */
const char *placer__text(struct placer *p, u64 addr, char *buf, size_t len);

/* Is the object marked as fit for shadow stacks (CET)? */
bool place__marked_shadow_stack(struct elf *elf);
/* May a process that maps it run with a shadow stack here? The kernel's emulated call would break its return. */
bool place__shadow_stack(struct elf *elf);

#endif
