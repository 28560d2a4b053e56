/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "findings/finding.h"

/*
 * Adds the range of NVTX in which most of a finding's time was lost, by another pass over the activity. Call it once
 * the profile is classified. 0 or negative errno.
 */
int ranges__add(struct finding *list, u32 n, const struct finding_input *in, struct activity *a);
