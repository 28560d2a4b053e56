/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that a program will map when it starts: itself, for a script its
 * interpreter, and the libraries that they need, looked for where the dynamic
 * loader would. Nothing is run for that. One too many does no harm, and what is
 * missed is found when it is mapped.
 */
#ifndef SONDE_ELF_NEEDED_H
#define SONDE_ELF_NEEDED_H

#include "core/types.h"

/* The file that execvp() would run: 0, -ENOENT, or -EACCES if there is one that may not be run. */
int needed__program(const char *name, char *path, size_t size);
/* Calls fn with an open descriptor of each file, once each; fn may keep a copy. program: a path. */
void needed__each(const char *program, void (*fn)(int fd, void *arg), void *arg);

#endif
