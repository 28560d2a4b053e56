/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that exclude each other by a semaphore of System V end each other's waits. A thread that waits for work
 * in the same call is woken by threads that do not wait in it, or by its only client, which waits for the answer.
 */
#pragma once

#include "findings/finding.h"

/* Sets the kind of waits for such a semaphore, which count as idle until then. 0 or -ENOMEM. */
int classify_semaphore__waits(const struct finding_input *in);
