/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* 64-bit numbers in JSON, whose own are doubles: those past 2^53 are strings of digits. */
#ifndef SONDE_UTIL_JSON_H
#define SONDE_UTIL_JSON_H

#include <cjson/cJSON.h>

#include "core/types.h"

/* false: no memory */
bool json__add_u64(struct cJSON *object, const char *name, u64 v);
bool json__add_s64(struct cJSON *object, const char *name, s64 v);
bool json__add_text(struct cJSON *object, const char *name, const char *text); /* NULL: left out */

/* The member as a number, 0 if it is missing or none. *ok (may be NULL) becomes false then, and is left alone otherwise. */
u64 json__u64(const struct cJSON *object, const char *name, u64 max, bool *ok);
s64 json__s64(const struct cJSON *object, const char *name, bool *ok);
/* The member as a text, NULL if it is missing or none. */
const char *json__text(const struct cJSON *object, const char *name);

#endif
