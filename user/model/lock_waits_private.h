/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by lock_waits.c, which loads waits, and lock_waits_order.c, which sorts them. These return 0 or -ENOMEM. */
#pragma once

#include "model/lock_waits.h"

void lock_waits__init(struct lock_waits *l);
/* Sorts the waits by thread and time; lock_waits__of_thread then finds them. */
int lock_waits__sort(struct lock_waits *l);
/* Sorts the releases by lock and time. */
int lock_waits__sort_releases(struct lock_waits *l);
/* Sets the run of each wait. */
int lock_waits__number_runs(struct lock_waits *l);
