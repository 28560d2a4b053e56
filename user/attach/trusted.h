/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "util/walk.h"

#include <sys/types.h>

/*
 * Returns an O_PATH descriptor of the regular file at an absolute path below root, if only root and `owner` could
 * have put it there or written it: they own it and every folder and symbolic link on the path, and no other user can
 * write to these. Returns negative errno otherwise; -EPERM: there is such a file, but other users could have written
 * it. may_visit is called with arg for each inode before anything is asked of it; a result other than 0 is returned.
 */
int trusted__find(int root, const char *path, uid_t owner, walk_visit *may_visit, void *arg);
