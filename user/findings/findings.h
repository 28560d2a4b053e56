/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs this folder's modules over a trace, merges and ranks their findings. */
#pragma once

#include "findings/finding.h"
#include "output/table.h"

/*
 * n_parts: as in profile__new. 0 or negative errno; findings__free in any case. If q->findings is set, the first call
 * stores the findings there, and later ones return them if they have the parts.
 */
int findings__read(struct findings **out, const struct query *q, u32 n_parts);
/* As findings__read, without findings: reads only what decides the colours of the profile's cells. */
int findings__read_colours(struct findings **out, const struct query *q, u32 n_parts);
void findings__free(struct findings *f);
/* Returns the i-th finding by rank; NULL: there are fewer. */
const struct finding *findings__ranked(const struct findings *f, u32 i);
/* Returns the activity that was read, for names of calls and to load parts of it again. */
struct activity *findings__activity(const struct findings *f);
/* Returns what the modules got. The wait profile is classified once findings__read has returned. */
const struct finding_input *findings__input(const struct findings *f);

/* Returns the factor of the weight of a time that is short, also compared to query__measured(); 1 for other times. */
double findings__short_factor(u64 ns, u64 measured);
/* Returns the colour of a cell of the profile, of a state that is known. NULL: runnable */
enum finding_colour findings__colour(const struct profile_cell *cell);
/* Copies the first finding of the selected time; an empty one: none cost enough of it. 0 or negative errno. */
int findings__first(struct finding *first, const struct query *q);

/* Returns the ns of waits for locks without holders, because there were too many waits. */
u64 findings__left_out(const struct findings *f);

/* The most findings that are printed, of those that matter */
#define FINDINGS_MAX 7
/* The most of those that cost no time of their own, after these */
#define NOTICES_MAX 4

/* How many findings have been printed. */
struct findings_printed {
	u32 causes, notices;
};

/*
 * Is this finding, the next by rank, printed? Counts it if it is. One of little weight, compared to the first one or to
 * the time as a whole, is not; the first one is.
 */
bool findings__is_printed(const struct findings *findings, const struct finding *f, const struct query *q,
			  struct findings_printed *printed);

/* findings_output.c: adds it as a finding of the report; next: with the command that shows more. */
void finding__report(const struct finding *f, const struct query *q, bool next, struct report_output *out);
/* findings_output.c: adds them as findings of the report, and as a table to CSV and JSON. */
void findings__add_to(const struct findings *f, const struct query *q, struct report_output *out);
