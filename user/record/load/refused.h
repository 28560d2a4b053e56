/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that this kernel refuses, and what a recording lacks without them. */
#pragma once

#include "kernel/probes.h"

struct session;

/* A program that the kernel refused, and what the recording lacks without it. */
struct refusal {
	const struct schema_family *family;
	const char *program;
	char *why, *lacks;
	bool is_whole_family; /* the whole family is disabled */
	const struct family_part *part; /* in the family's list; NULL: the list has no such part */
};

struct refused {
	struct refusal *programs;
	u32 n;
	u32 n_reported, n_written; /* how many of these were printed as warnings and written into the trace */
};

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
/* Returns whether a program of the family was refused. */
bool refused__concerns(const struct session *s, const struct schema_family *f);
/* Prints a line for each family or part that has not had one. */
void refused__warn(struct session *s);
/* Writes the refused programs that are not in the trace yet. */
void refused__write(struct session *s);
void refused__free(struct refused *r);
