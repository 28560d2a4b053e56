/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file systems mounted in processes' mount namespaces, by device number. The table of a namespace is read once
 * and cached until the kernel reports a change, because the device number of an unmounted file system may be reused.
 */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The type of the file system with this device number from /proc/PID/mountinfo ("nfs4", "fuse.sshfs") of process pid;
 * 0: of this process. false: it is not mounted there, or the table can't be read.
 */
bool mounts__type(u32 pid, u32 major, u32 minor, char *type, size_t len);
struct mount {
	u64 id; /* as in /proc/PID/fdinfo */
	u64 dev; /* major << 20 | minor */
	char type[40]; /* a longer name is cut */
};

/*
 * The mount with this id in the mount namespace of process pid (0: of this process), as far as that process's root
 * shows it. An id has one mount in all namespaces together as long as a descriptor refers to the mount.
 */
bool mounts__by_id(u32 pid, u64 id, struct mount *out);
/* Parses a line of mountinfo. false: it has no device or type. */
bool mount__parse(const char *line, struct mount *m);
/* Closes and clears the cached tables. */
void mounts__forget(void);
/* How many tables were read. */
u32 mounts__reads(void);
