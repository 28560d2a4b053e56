/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The users' rules on libraries, docs/adding-a-rule.md. They are read before sonde gives up its rights; children of
 * this process have them, too.
 */
#pragma once

#include <stdbool.h>

/* Reads the file of an option --rules; false after printing an error. */
bool rule_files__add(const char *path);
/* Reads the files of /etc/sonde/rules.d, once; those of --rules precede. Prints a warning for a bad file. */
void rule_files__add_folder(void);
