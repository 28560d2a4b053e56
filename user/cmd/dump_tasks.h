/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The asyncio tasks in the output of `sonde dump`. */
#pragma once

#include "output/table.h"
#include "python/tasks.h"

struct dump_tasks {
	struct table *stacks, *tasks, *awaits;
};

/* Adds empty tables. */
void dump_tasks__tables(struct dump_tasks *d, struct report_output *out);
void dump_tasks__fill(const struct dump_tasks *d, const struct tasks *t, u32 pid);
/* Prints the tasks for people, those that a task awaits below it. */
void dump_tasks__print(const struct tasks *t);
/* In dump.c. */
void dump__print_frame(const struct snapshot_frame *f, u32 indent);
