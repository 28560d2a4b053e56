/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle code that may poll. */
#pragma once

#include "findings/group.h"

/*
 * Adds to the finding of an idle thread that it sleeps often: it may poll for something that came long ago. Such a
 * finding is printed beside causes that take little of the time.
 */
void polls__add(const struct finding_input *in, const struct group *g, struct finding *f);
