/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pager for long output: if standard output is a terminal, what a command prints there first goes to a child process,
 * which starts the pager as soon as the output is longer than the screen, and else prints it. SONDE_PAGER or PAGER
 * name it; else it is `less -FRX`.
 */
#pragma once

#include "output/table.h"

/* --no-pager */
void pager__disable(void);
/*
 * Sets the colours and the width of the options (OUTPUT_TABLE), which are those of the terminal, and forks the child.
 * To be called before the process gives up its rights, from where an exit leads to exit(): this waits until the pager
 * is left.
 */
void pager__start(struct output_options *options);
/* From here on an interrupt only affects the pager and does not end this process. */
void pager__printing(void);
