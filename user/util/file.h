/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a regular file for reading at an untrusted path. Other kinds of files are not opened, because opening a
 * device can have effects and a FIFO can block. Returns a descriptor or negative errno; -EINVAL: not a regular
 * file.
 */
int file__open_regular(const char *path);

/*
 * Opens a file or folder in the folder dir that belongs to root or to the user who runs sonde. -EPERM: others own it,
 * or can write to it.
 */
int file__open_trusted(int dir, const char *path, int flags);

/* Reads the first line of a file into buf, without its newline; "": it can't be read. Returns buf. */
char *file__first_line(const char *path, char *buf, size_t size);

/* Scans the lines of a file until one has all n values of the format, as for sscanf(). false: no line has. */
bool file__scan(const char *path, int n, const char *format, ...) __attribute__((format(scanf, 3, 4)));

/* Opens the file of an O_PATH descriptor for reading if it is a regular file; closes the descriptor. */
int file__reopen_regular(int at);
