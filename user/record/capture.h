/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capture ranges (record --capture-range). The BPF programs record a process only in its ranges
 * (bpf/probes/capture/capture.bpf.c). What began within a range and ended after it is cut here, and what programs and
 * host code report at other times is discarded: work of a GPU, whose records come late, and tasks of asyncio.
 */
#pragma once

#include "core/meta.h"
#include "record/active.h"
#include "util/map.h"

struct session;

struct capture {
	struct map processes; /* u32 pid -> struct captured_process */
	struct active_times active; /* ranges of all processes */
	bool is_over; /* the last range has ended */
};

void capture__open(struct session *s);
void capture__close(struct capture *c);
/* The traced time begins: with a pause, unless a process is in a range already. */
void capture__start(struct session *s);
/* Called with each record when it is taken out of a ring, before any record of that time is handled. */
void capture__note(struct session *s, const struct event *e, u32 size);
/*
 * Returns the record, or a copy of it that ends with the range; NULL: it is not of a range. copy has RECORD_MAX bytes.
 */
const void *capture__cut(struct session *s, const void *record, u32 size, void *copy);
void capture__tick(struct session *s, u64 now);
/* Writes the last pauses. */
void capture__finish(struct session *s);
/* After the last record: warns if no range has begun. */
void capture__warn(struct session *s);
