/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the futexes that are used as locks without an owner in them, such as those of Python's, Rust's and Go's locks,
 * by the threads that wait and wake. A thread that releases a lock waits for it at other times, whereas the condition
 * of a queue or a pool is woken by other threads.
 */
#pragma once

#include "trace/reader.h"

struct lock_futexes;

/* Reads all waits of the trace. 0 or negative errno; free *out in any case. */
int lock_futexes__load(struct lock_futexes **out, struct trace *trace);
void lock_futexes__free(struct lock_futexes *l);
/* Returns whether the futex belongs to a GIL, whose waits have events of their own. */
bool lock_futexes__is_gil(const struct lock_futexes *l, u32 pid, u64 futex);
/* Returns whether the futex is used as a lock; l NULL: false. */
bool lock_futexes__has(const struct lock_futexes *l, u32 pid, u64 futex);
