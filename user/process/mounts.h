/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file systems mounted in processes' mount namespaces, by device number. A namespace's table is read once and stored until
 * the kernel reports that it has changed: the number of a file system that was unmounted may be another one's since then.
 */
#ifndef SONDE_PROCESS_MOUNTS_H
#define SONDE_PROCESS_MOUNTS_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The type of the file system with this device number as /proc/PID/mountinfo has it ("nfs4", "fuse.sshfs"), of process pid; 0: of
 * this one. false: it is not mounted there, or the table can't be read.
 */
bool mounts__type(u32 pid, u32 major, u32 minor, char *type, size_t len);
struct mount {
	u64 dev; /* major << 20 | minor */
	char type[40]; /* what is over that is cut off */
};

/* A line of such a file. false: it names no device or type. */
bool mount__parse(const char *line, struct mount *m);
/* Closes and forgets what is stored. */
void mounts__forget(void);
/* How many tables were read. */
u32 mounts__reads(void);

#endif
