/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts of lanes' records. Records refer to them by an id, a hash. A text is recorded once for each tracer, as a record
 * of the caller's kind whose body is the id, when a record first uses it.
 */
#pragma once

#include "lanes.h"

/* The id of a text, which is not 0. */
uint64_t text__id(enum lane_kind lane, uint16_t record_kind, const char *text, size_t len);
/* A record uses this id: records the text if this tracer does not know it. */
void text__use(enum lane_kind lane, uint16_t record_kind, uint64_t id);
/* The text with its NUL; "": it is not stored. */
const char *text__of(uint64_t id);
/* A tracer has come (true), or the last one has left. */
void texts__set_recording(enum lane_kind lane, bool recording);
void texts__after_fork(void);
