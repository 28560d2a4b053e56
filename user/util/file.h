/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_FILE_H
#define SONDE_UTIL_FILE_H

/*
 * Opens a regular file for reading at a path that somebody else chose: nothing
 * else there is opened, as opening a device can have effects and a FIFO can
 * wait. Its descriptor or negative errno; -EINVAL: not a regular file.
 */
int file__open_regular(const char *path);

#endif
