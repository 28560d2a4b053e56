/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of trace_facts share. */
#pragma once

#include "model/facts.h"

struct pauses;

/* Takes the times out of `pauses`. Called once, when the windows of f are known. 0 or -ENOMEM */
int facts_unmeasured__settle(struct trace_facts *f, struct pauses *pauses);
/* Sums up again after the windows of f have changed. */
void facts_unmeasured__sum(struct trace_facts *f);
