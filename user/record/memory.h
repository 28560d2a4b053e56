/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits sonde's own memory and files. */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

struct session;

struct memory {
	int statm_fd; /* /proc/self/statm, which can't be opened later; 0: not open */
	u64 max; /* limit of this process's data in bytes; 0: none */
	u64 again, again_time; /* bytes and ns above which tables are freed once more */
	u64 next_tables; /* ns: of the next report of table sizes */
	bool warned;
};

/*
 * Allows this process and those that it forks as many descriptors as a recording may need. Returns -EMFILE with a
 * message if the limit is too low and may not be raised.
 */
int memory__raise_files(char *err, size_t len);
/* Called while this process has its privileges. */
void memory__limit(struct session *s);
/* Returns -ENOMEM with a message if the recording can't continue. */
int memory__poll(struct session *s, u64 now, char *err, size_t len);
void memory__write_tables(struct session *s);
void memory__close(struct memory *m);
