/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader's side of the rings that core/ring.h describes. */
#ifndef SONDE_RECORD_RING_H
#define SONDE_RECORD_RING_H

#include "core/ring.h"

struct rings;

/* The record may be changed and is gone when the function returns. */
typedef void (*ring_record_fn)(void *arg, void *record, u32 size);

/*
 * Hands over what is whole in one ring; a lap or 256 KiB at most, so that others
 * get their turn. true: that much was there, and maybe more.
 */
bool ring__read(struct ring *r, u64 size, ring_record_fn fn, void *arg);
/* Is anything reserved that was not read? */
bool ring__pending(const struct ring *r);

/* The rings of all CPUs, and the bell that producers ring when one fills up. */
int rings__open(struct rings **out, int rings_fd, int bell_fd, u32 cpus, u64 size);
bool rings__read(struct rings *rs, ring_record_fn fn, void *arg);
bool rings__pending(const struct rings *rs);
void rings__close(struct rings *rs);
/* In a forked process: unmaps the records. NULL-safe. */
void rings__forget(struct rings *rs);

#endif
