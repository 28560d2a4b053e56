/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts and tables for an HTML page. All texts may come from targets: nothing in them becomes markup. */
#pragma once

#include <stdio.h>

#include "output/table.h"

/* The content of an element, or of an attribute in quotes. Control characters are shown, as on a terminal. */
void html__put_text(FILE *out, const char *text);
/*
 * A JSON string with its quotes, for a script element or an attribute: characters that could end these or be read as
 * markup are written as \uNNNN. Control characters are shown, as on a terminal.
 */
void html__put_json(FILE *out, const char *text);
/*
 * The first rows of a table as people read it; a cell of a number has it in data-v, too. `command` is what shows all
 * rows. Nothing if it has no rows, or is for machines only.
 */
void html__put_table(FILE *out, const struct table *t, u32 rows, const char *command);
/*
 * A stream whose text becomes the value of an attribute in single quotes, written to out. NULL: no memory. Closing it
 * leaves out open.
 */
FILE *html__attribute(FILE *out);
