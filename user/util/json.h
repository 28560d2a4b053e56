/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* 64-bit numbers in JSON, whose numbers are doubles: those above 2^53 are strings of digits. */
#pragma once

#include <cjson/cJSON.h>

#include "core/types.h"

/* false: no memory */
bool json__add_u64(struct cJSON *object, const char *name, u64 v);
bool json__add_s64(struct cJSON *object, const char *name, s64 v);
bool json__add_text(struct cJSON *object, const char *name, const char *text); /* NULL: omitted */

/* Returns the member as a number, or 0 and *ok = false (ok may be NULL) if it is missing, no number or above max. */
u64 json__u64(const struct cJSON *object, const char *name, u64 max, bool *ok);
s64 json__s64(const struct cJSON *object, const char *name, bool *ok);
/* Returns the member as a text; NULL: it is missing or no text. */
const char *json__text(const struct cJSON *object, const char *name);
