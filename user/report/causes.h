/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the time of processes went, by kind of finding, for report offcpu and the summary. */
#pragma once

#include "findings/findings.h"

/* Adds table `causes`. Returns 0 or -ENOMEM. */
int causes__report(const struct findings *findings, struct report_output *out);
