/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a wait for another thread or process comes to in the end: the thread at the end of the chain of waits, and its
 * activity.
 */
#pragma once

#include "findings/group.h"

/*
 * Follows the threads that ended most of the group's waits, from each to the one that ended most of its own, up to one
 * that did something else. If it is known what that one did, it becomes the counterpart of the finding, which then
 * counts for more. Returns whether it did.
 */
bool waited_for__follow(const struct finding_input *in, const struct group *g, struct finding *f);

/*
 * Is it mostly another thread of the same process that ended these waits, and does that thread have nothing to do or
 * sleep meanwhile? Then the waits are for something to do, too.
 */
bool waited_for__is_idle(const struct finding_input *in, const struct group *g);
