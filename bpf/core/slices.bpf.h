/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When families sched and sample measure in slices of time (user/record/attach/slices.c). Their programs at switches
 * and wake-ups are detached between slices. Each slice begins and ends at one moment for all threads.
 */
#pragma once

#include "types.h"

/* ns; 0: a slice, or the whole recording, is being measured. While it is not 0, these programs do nothing. */
extern u64 slices_stopped;
/* ns: start of the current or last slice; 0: there was no pause yet */
extern u64 slices_resumed;
