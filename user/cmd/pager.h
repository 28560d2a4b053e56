/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pager: if standard output is a terminal, what a command prints there goes to a child process. SONDE_PAGER or PAGER
 * name it; else it is `less -FRX`, which ends at once where the output fits on the screen.
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
