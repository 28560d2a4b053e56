/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that this kernel refuses, and what a recording lacks without them. */
#ifndef SONDE_RECORD_REFUSED_H
#define SONDE_RECORD_REFUSED_H

#include "record/internal.h"

/* What the program is to its family; NULL: a part that is not described, its functions or its tracepoint say it. */
const struct family_part *refused__part(const struct program *p);
/* Before loading: the program's tracepoint does not exist here. 0 or -ENOMEM. */
int refused__absent(struct session *s, struct program *p);
/* After loading: takes refused programs out, and families that record nothing without them. An error: nothing can be recorded. */
int refused__apply(struct session *s, char *err, size_t len);
/*
 * The program was loaded and can't be attached, for this negative errno: what it belongs to is taken out, taken off and
 * reported. An error: nothing can be recorded.
 */
int refused__unattached(struct session *s, struct program *p, int error, char *err, size_t len);
/* A line for each family or part that has had none. */
void refused__warn(struct session *s);
/* Into the trace, what is not there yet. */
void refused__write(struct session *s);
void refused__free(struct session *s);

#endif
