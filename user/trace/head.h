/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The JSON of a trace's first frame. */
#pragma once

#include "trace/writer.h"

struct cJSON;

/* Returns the JSON as allocated text; NULL: no memory. */
char *head__print(const struct schema *schema, const struct trace_head *head);
/* The texts in head point into json. Missing members are "" or 0. */
void head__parse(struct trace_head *head, const struct cJSON *json);
