/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stddef.h>

/*
 * Opens the folder in which a file will be created (O_PATH). Symbolic links on its path are followed only if they
 * belong to root or to the user who runs sonde, also by sudo: another user could let them lead anywhere. Returns the
 * descriptor or negative errno; -EPERM: such a link, with a message in err.
 */
int folder__open(const char *path, char *err, size_t len);
/*
 * Creates a folder with the rights of the user behind sudo, to whom it belongs, unless there is one. Symbolic links on
 * the path to it are followed as by folder__open(). Returns 0 or negative errno, with a message in err.
 */
int folder__create(const char *path, char *err, size_t len);
