/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that this kernel refuses, and what a recording lacks without them. */
#pragma once

#include "record/internal.h"

/* Returns the program's part in its family; NULL: none is described, as its functions or tracepoint say enough. */
const struct family_part *refused__part(const struct program *p);
/* Returns whether another program does the same where the kernel lacks what this one is attached to. */
bool refused__is_optional(const struct program *p);
/* Called before loading, if the kernel lacks the program's tracepoint. Returns 0 or -ENOMEM. */
int refused__absent(struct session *s, struct program *p);
/*
 * After loading: drops refused programs, and families that record nothing without them. An error: nothing can be
 * recorded.
 */
int refused__apply(struct session *s, char *err, size_t len);
/*
 * Called if the program was loaded but can't be attached, for this negative errno: its part is dropped, detached and
 * reported. An error: nothing can be recorded.
 */
int refused__unattached(struct session *s, struct program *p, int error, char *err, size_t len);
/* Prints a line for each family or part that has not had one. */
void refused__warn(struct session *s);
/* Writes the refused programs that are not in the trace yet. */
void refused__write(struct session *s);
void refused__free(struct session *s);
