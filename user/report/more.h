/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What follows the summary's tables: further reports, and what the figures leave out. */
#ifndef SONDE_REPORT_MORE_H
#define SONDE_REPORT_MORE_H

#include "report/report.h"

/* kinds: u16 ids of the events that there are, as keys */
void more__add_notes(const struct query *args, const struct map *kinds, struct report_output *out);

#endif
