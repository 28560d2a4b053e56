/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is an interrupted thread where a call may be made in its place? */
#ifndef SONDE_INJECT_SAFE_POINT_H
#define SONDE_INJECT_SAFE_POINT_H

#include "inject/space.h"
#include "inject/tracee.h"

/*
 * Reads what that takes of the files, before a thread is stopped for it: PyTorch's have half a million symbols. false: the
 * time for it (space__limit()) was not enough.
 */
bool safe_point__prepare(struct space *s);
/*
 * true, or why (of size len) says where it is. A thread in a file that no answer came about is in danger, too. The files are asked
 * within the time of space__limit(), and what is not known by then is not safe.
 */
bool safe_point__is_safe(struct space *s, const struct tracee *t, char *why, size_t len);

#endif
