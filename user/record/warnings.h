/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Warnings of a recording: stored here until the command prints them (session__next_warning()). */
#pragma once

#include "core/types.h"

#include <stdbool.h>

enum first_of { FIRST_HIDDEN, FIRST_UNWATCHED };

struct warnings {
	char **texts;
	u32 n, next;
	u32 n_written; /* to the trace */
	/* of which warnings the accounts had the first */
	struct first {
		u32 account;
		enum first_of what;
	} * firsts;
	u32 n_firsts;
};

/* Returns whether this is the first such warning about a file of the account. */
bool warnings__is_first(struct warnings *w, u32 account, enum first_of what);
void warnings__free(struct warnings *w);
