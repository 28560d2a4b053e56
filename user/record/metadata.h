/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes the metadata of a trace: the machine, the clocks, the probes, the costs. */
#pragma once

#include "core/types.h"

#include <stddef.h>

struct session;
struct trace_head;

/* buf gets the texts; it must live as long as head. */
void metadata__head(struct session *s, struct trace_head *head, char *buf, size_t len);
void metadata__clock(struct session *s);
/* Writes the names of the probes numbered from + 1 on. */
void metadata__probes(struct session *s, u32 from);
void metadata__hits(struct session *s);
void metadata__cost(struct session *s);
/* Returns the number of all hits; *skipped: the number of those that the process filter rejected. */
u64 metadata__total_hits(struct session *s, u64 *skipped);
u64 metadata__probes_ns(struct session *s, u64 hits);
