/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Modules on one subject, which the report about this subject runs alone. */
#pragma once

#include "findings/finding.h"
#include "output/table.h"

/* Each needs the field of finding_input that is named here; NULL: it finds nothing. */
int findings__find_gpu(const struct finding_input *in, struct findings *out); /* gaps */
int findings__find_gpu_metrics(const struct finding_input *in, struct findings *out); /* none */
int findings__find_cuda(const struct finding_input *in, struct findings *out); /* cuda */
int findings__find_nccl(const struct finding_input *in, struct findings *out); /* nccl */
int findings__find_net(const struct finding_input *in, struct findings *out); /* net */

/*
 * Adds the findings of one such module to the report, in the order in which they are found. in needs q and the field
 * of the module. 0 or negative errno.
 */
int findings__add_about(const struct finding_input *in,
			int (*find)(const struct finding_input *in, struct findings *out), struct report_output *out);
