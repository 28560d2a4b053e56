/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* File systems served by another machine or by a process (FUSE). A request to one may wait for ever. */
#ifndef SONDE_PROCESS_FILESYSTEM_H
#define SONDE_PROCESS_FILESYSTEM_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>

/* FUSE's number is also that of virtiofs, by which a virtual machine has files of its host: filesystem__type() distinguishes them. */
#define FILESYSTEM_FUSE 0x65735546

/* The name of the file system with this magic number (statfs(2), f_type) if it is such a one, else NULL. */
const char *filesystem__remote(u64 magic);
/* Of the file behind a descriptor, O_PATH will do. Asks the file system, so it may hang. 0: not known. */
u64 filesystem__magic(int fd);
/*
 * The type of the file system with this device number as it is mounted in this process's mount namespace or that of
 * process pid (0: none), as /proc/PID/mountinfo has it ("nfs4", "fuse.sshfs", "virtiofs"). No server is asked. false: it is
 * mounted in neither.
 */
bool filesystem__type(u32 major, u32 minor, u32 pid, char *type, size_t len);
/* As filesystem__remote(), of such a type. */
const char *filesystem__remote_type(const char *type);
/* Of the file behind a descriptor that process pid maps; its server is asked only if it is mounted in neither namespace. */
const char *filesystem__remote_file(int fd, u32 pid);

#endif
