/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts about the results of lock_blame. */
#pragma once

#include "model/lock_blame.h"

#define LOCK_TEXT 768

/* "reload (srv.py:7)", "worker (a.out)", "?" for 0; returns buf */
char *lock_text__code(const struct stacks *s, u32 frame, char *buf, size_t size);
/* "slept in clock_nanosleep", without the code. Returns buf */
char *lock_text__activity(const struct activity *a, u32 reason, char *buf, size_t size);
/*
 * "slept in clock_nanosleep", or "for 60% of that slept ..", without the code; "": it took less than a third of the
 * time, or is not known. Returns buf
 */
char *lock_text__mostly(const struct activity *a, const struct lock_main_activity *did, char *buf, size_t size);
/*
 * Describes row i: "handle (srv.py:12) waited SHARE for a lock held by reload (srv.py:7), which slept in
 * clock_nanosleep in reload (srv.py:8)". Returns buf.
 */
char *lock_text__sentence(const struct lock_blame *b, const struct activity *a, const struct stacks *s, u32 i,
			  const char *share, char *buf, size_t size);

/* A note about the ns that lock_blame__left_out returns. Returns buf. */
char *lock_text__left_out(u64 ns, char *buf, size_t size);
