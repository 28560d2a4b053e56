/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader's side of the rings that core/ring.h describes. */
#pragma once

#include "core/ring.h"

struct rings;

/* The callback may change the record, which is valid until it returns. */
typedef void (*ring_record_fn)(void *arg, void *record, u32 size);

/*
 * Passes on the complete records of one ring; at most one lap or 256 KiB, so that other rings get their turn. true:
 * the limit was reached, and there may be more.
 */
bool ring__read(struct ring *r, u64 size, ring_record_fn fn, void *arg);
/* Returns whether there is a reserved record that was not read. */
bool ring__pending(const struct ring *r);

/* The rings of all CPUs, and the ring buffer by which producers wake the worker. */
int rings__open(struct rings **out, int rings_fd, int bell_fd, u32 cpus, u64 size);
bool rings__read(struct rings *rs, ring_record_fn fn, void *arg);
bool rings__pending(const struct rings *rs);
void rings__close(struct rings *rs);
/* In a forked process: unmaps the records. NULL-safe. */
void rings__forget(struct rings *rs);
