/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What became slower between two traces, or two times of one: functions, causes of waiting, calls and findings of each
 * side, matched by names and not by pids, with the differences that noise does not explain. docs/diff.md describes the
 * method.
 */
#pragma once

#include "model/query.h"
#include "output/table.h"

enum { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

/* Fills out. 0 or negative errno. */
int diff__run(const struct query *const sides[DIFF_SIDES], struct report_output *out);
