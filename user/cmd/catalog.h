/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of what the embedded BPF object can trace, for `sonde list`. */
#pragma once

#include "output/table.h"

struct embedded;

/* Each of these adds one table. bpf must live until the table is printed. */
void catalog__families(const struct embedded *bpf, struct report_output *out);
void catalog__probes(const struct embedded *bpf, struct report_output *out);
void catalog__events(const struct embedded *bpf, struct report_output *out);
void catalog__fields(const struct embedded *bpf, struct report_output *out);
void catalog__options(const struct embedded *bpf, struct report_output *out);
