/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* File systems served by another machine or by a process (FUSE). A request to such a file system may wait forever. */
#pragma once

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * FUSE has the same magic number as virtiofs, through which a virtual machine has files of its host:
 * filesystem__type() distinguishes them.
 */
#define FILESYSTEM_FUSE	   0x65735546
#define FILESYSTEM_OVERLAY 0x794c7630

/* The name of the remote file system with this magic number (statfs(2), f_type); NULL: it is local. */
const char *filesystem__remote(u64 magic);
/*
 * The type of the file system with this device number as mounted in this process's mount namespace or that of process
 * pid (0: none), from /proc/PID/mountinfo ("nfs4", "fuse.sshfs", "virtiofs"). No server is asked. false: it is
 * mounted in neither.
 */
bool filesystem__type(u32 major, u32 minor, u32 pid, char *type, size_t len);
/* As filesystem__remote(), for such a type. */
const char *filesystem__remote_type(const char *type);
/*
 * Why the server of the file behind a descriptor, which process pid (0: none) maps or sees, may never answer: the name
 * of its file system, or that another user mounted it. NULL: it is local. Decides by the mount of the descriptor, which
 * may be an O_PATH one, and by dev, the device number in /proc/PID/maps (0: unknown). No server is asked.
 */
const char *filesystem__remote_file(int fd, u32 pid, u64 dev);
