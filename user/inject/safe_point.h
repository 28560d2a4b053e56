/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Can a stopped thread make a call at its current position? */
#pragma once

#include "inject/space.h"
#include "inject/tracee.h"

/*
 * Reads the required symbols of the files before a thread is stopped: PyTorch's files have half a million. false: the
 * time limit (space__limit()) was exceeded.
 */
bool safe_point__prepare(struct space *s);
/*
 * Returns true, or false with the position in why (of size len). A thread in a file without an answer counts as
 * unsafe. The files are asked about within the limit of space__limit(), and what is unknown after it counts as
 * unsafe.
 */
bool safe_point__is_safe(struct space *s, const struct tracee *t, char *why, size_t len);
