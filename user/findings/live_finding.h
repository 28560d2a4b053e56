/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first finding of an interval, for `sonde top` and the line of `sonde record`, in the words of reports. */
#pragma once

#include "findings/finding.h"
#include "model/live.h"

/* Writes f, with its text. Returns false if nothing took long enough to be named. */
bool live_finding__first(const struct live_view *v, const struct names *names, struct finding *f);
