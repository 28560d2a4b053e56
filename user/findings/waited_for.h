/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the thread at the end of a chain of waits, and what it did: the cause of the waits of all threads before it. */
#pragma once

#include "findings/group.h"

/*
 * Follows the threads that ended most of the group's waits, from each to the one that ended most of its own, up to one
 * that did something else. If it is known what that one did, it becomes the counterpart of the finding, and the
 * finding's confidence becomes FINDING_ATTRIBUTED. Returns whether there is such a thread.
 */
bool waited_for__follow(const struct finding_input *in, const struct group *g, struct finding *f);

/* Adds to the finding's counterpart, the thread that ended the waits, what that thread did in most of its time. */
void waited_for__add_activity(const struct finding_input *in, const struct group *g, struct finding *f);

/* Makes `thread`, for which the finding's threads waited, the counterpart; false: nothing that it did explains this. */
bool waited_for__add(const struct finding_input *in, struct thread_key thread, struct finding *f);

/*
 * A main thread that waits for most of the recording, for one of its threads that runs for most of the time: makes that
 * thread the counterpart. Returns whether there is exactly one.
 */
bool waited_for__add_worker(const struct finding_input *in, const struct group *g, struct finding *f);

/*
 * Is it mostly another thread of the same process that ended these waits, and does that thread have nothing to do or
 * sleep meanwhile? Then the waits are for something to do, too. So are those for a lock that threads or processes hold
 * in turn while they wait for something to do, as those of a server that takes turns to accept.
 */
bool waited_for__is_idle(const struct finding_input *in, const struct group *g);
