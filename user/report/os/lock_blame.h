/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "report/report.h"

/* Adds tables `held` and `signalled` and a finding; *has_rows: they have rows. Returns 0 or negative errno. */
int lock_blame_tables__add(const struct query *args, struct report_output *out, bool *has_rows);
