/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A line on the terminal that shows what a command does. Nothing is printed if stderr is no terminal. */
#pragma once

#include <stdbool.h>

/* Prints no status lines from here on (--quiet). */
void status_line__disable(void);
/* Returns whether lines are shown: stderr is a terminal, and they were not disabled. */
bool status_line__is_shown(void);
/* Replaces the line, cut at the terminal's width; "" removes it. */
void status_line__set(const char *format, ...) __attribute__((format(printf, 1, 2)));
