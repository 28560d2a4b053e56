/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The asyncio tasks in the output of `sonde dump`. */
#pragma once

#include "output/table.h"
#include "python/tasks.h"

/* Adds an empty table of tasks. */
struct table *dump_tasks__table(struct report_output *out);
void dump_tasks__fill(const struct tasks *t, u32 pid, struct table *table);
/* Prints the tasks for people; print_frame prints a line for each frame. */
void dump_tasks__print(const struct tasks *t, void (*print_frame)(const struct snapshot_frame *f));
