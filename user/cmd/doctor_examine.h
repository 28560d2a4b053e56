/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which families a mapped file concerns, for `sonde doctor`. doctor has rights, so a child without any
 * (sandbox/sandbox.h) parses the file; its replies are only as trustworthy as the file. Files of one owner share a
 * child as long as no other user may write them, since the author of a file may take over the child that parses it.
 */
#pragma once

#include "kernel/embedded.h"

#define NOTES_MAX 32

/* What one family reports about one file. */
struct note {
	u32 family;
	char runtime[80], how[160];
};

struct note_taker;

/* Returns NULL without memory. The child is forked for the first file. */
struct note_taker *note_taker__new(const struct embedded *embedded);
/* Ends the child. NULL-safe. */
void note_taker__free(struct note_taker *e);
/*
 * Fills out with at most NOTES_MAX notes about the file; fd < 0: it could not be opened, and is judged by its name.
 * Returns their number, or negative errno if the child ended without a reply or took too long. After six such files
 * that are not root's, only root's are examined (-EBUSY).
 */
int note_taker__ask(struct note_taker *e, int fd, const char *path, struct note *out);
