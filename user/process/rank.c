// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/rank.h"

#include <stdlib.h>
#include <string.h>

enum { VARIABLE_RANK, VARIABLE_SIZE, VARIABLE_LOCAL };

/*
 * torchrun runs inside the jobs of the others, so its variables come first. A target may set any of them to any text.
 */
static const char *const variables[RANK_LAUNCHERS][RANK_VARIABLES] = {
	{ "RANK", "WORLD_SIZE", "LOCAL_RANK" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK" },
	{ "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID" },
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID" },
};

/* Returns the number plus 1; 0: the text is not a number below RANK_MAX. */
static s32 number_of(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits <= 8 && !text[digits] && atoi(text) < RANK_MAX ? atoi(text) + 1 : 0;
}

static void end_entry(struct rank_parser *p)
{
	char *value = NULL;

	if (p->len < RANK_ENTRY) {
		p->entry[p->len] = '\0';
		value = strchr(p->entry, '=');
	}
	if (value)
		*value++ = '\0';
	for (u32 i = 0; value && i < RANK_LAUNCHERS; i++)
		for (u32 k = 0; k < RANK_VARIABLES; k++)
			/* of several entries with one name getenv() returns the first */
			if (!strcmp(p->entry, variables[i][k]) && !p->values[i][k])
				p->values[i][k] = number_of(value);
	p->len = 0;
}

void rank_parser__add(struct rank_parser *p, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!bytes[i])
			end_entry(p);
		else if (p->len < RANK_ENTRY - 1)
			p->entry[p->len++] = bytes[i];
		else
			p->len = RANK_ENTRY;
	}
}

struct process_rank rank_parser__result(struct rank_parser *p)
{
	for (u32 i = 0; i < RANK_LAUNCHERS; i++) {
		const s32 *v = p->values[i];

		if (v[VARIABLE_RANK] && v[VARIABLE_RANK] < v[VARIABLE_SIZE])
			return (struct process_rank){
				.rank = v[VARIABLE_RANK] - 1,
				.size = v[VARIABLE_SIZE] - 1,
				.local = v[VARIABLE_LOCAL] - 1,
			};
	}
	return (struct process_rank){ .local = -1 };
}
