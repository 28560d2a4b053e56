/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that a program will map when it starts: itself, for a script its interpreter, and the libraries that they
 * need, searched in the same places as by the dynamic loader. Nothing is executed for that. A superfluous file does
 * no harm, and a missing one is found when it is mapped.
 */
#pragma once

#include "core/types.h"

/* The file that execvp() would run: 0, -ENOENT, or -EACCES if there is one without permission to execute. */
int needed__program(const char *name, char *path, size_t size);
/* Calls fn with an open descriptor of each file, once each; fn may duplicate it. program: a path. */
void needed__each(const char *program, void (*fn)(int fd, void *arg), void *arg);
