/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many processes that ended the waits of one, such as the child processes that it started one after the other. */
#pragma once

#include "findings/group.h"

/*
 * Adds to the finding's detail how many processes ended the group's waits, which program they mostly ran, and in which
 * function they computed. Adds nothing if it was one process, or if most of the time was ended otherwise.
 */
void children__add(const struct finding_input *in, const struct group *g, struct finding *f);
/*
 * Did the processes that ended the group's waits, and those that they waited for in turn, mostly sleep? Unless the
 * waits hold up a request or an event loop, their parent has nothing to do, either.
 */
bool children__slept(const struct finding_input *in, const struct group *g);
