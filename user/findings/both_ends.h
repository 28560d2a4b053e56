/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections on this machine whose ends wait for each other, as small writes are held back. */
#pragma once

#include "findings/group.h"

/*
 * If the other end of the group's connection waited at the same time, and each time for as long as a delayed ACK takes,
 * states that. Returns whether it was so.
 */
bool both_ends__add(const struct finding_input *in, const struct group *g, struct finding *f);
