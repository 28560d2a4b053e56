/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Notes after the summary's tables: further reports, and what the figures omit. */
#pragma once

#include "model/stacks.h"
#include "report/report.h"

/* kinds: a map whose keys are the u16 ids of the kinds that occur */
void more__add_notes(const struct query *args, const struct map *kinds, const struct stacks *stacks,
		     struct report_output *out);
