/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The titles that servers gave the processes for which the finding's threads waited, such as those of PostgreSQL. */
#pragma once

#include "findings/group.h"

/* Quotes the most frequent title of the processes at the other ends of the group's connections, and another one. */
void titles__add(const struct finding_input *in, const struct group *g, struct finding *f);
