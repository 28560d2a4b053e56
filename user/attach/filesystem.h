/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* File systems that somebody else serves: a machine of the network, or a process (FUSE). A request to one may wait for ever. */
#ifndef SONDE_ATTACH_FILESYSTEM_H
#define SONDE_ATTACH_FILESYSTEM_H

#include "core/types.h"

/* The name of the file system with this magic number (statfs(2), f_type) if it is such a one, else NULL. */
const char *filesystem__remote(u64 magic);
/* Of the file behind a descriptor, O_PATH will do. Asks the file system, so it may hang. 0: it can't be told. */
u64 filesystem__magic(int fd);

#endif
