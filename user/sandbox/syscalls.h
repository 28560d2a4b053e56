/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The system calls that each process of sonde may make. The filters deny by default (docs/security.md lists what they
 * allow). Opening a file by its path without permission is refused with EACCES, because libraries try it and can do
 * without. Any other call that is not allowed is refused with EPERM and noted for syscalls__refused(): the caller
 * then ends with an error that names the call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum syscalls_role {
	SYSCALLS_WORKER,
	SYSCALLS_ATTACHER,
	SYSCALLS_PERF, /* an attacher whose probes are perf events */
	SYSCALLS_READER, /* reads traces that are already open, and prints */
	SYSCALLS_SOURCES, /* the same, and opens files by their paths for reading */
	SYSCALLS_OBSERVER, /* doctor: opens files by their paths for reading, reads processes */
	SYSCALLS_METER, /* runs a vendor's library: opens existing files, and uses ioctl() on devices */
	SYSCALLS_INJECTOR, /* traces a process and opens files, for writing, too; it creates none */
};

/*
 * Installs the filter, irreversibly. Returns 0 or negative errno; -ENOSYS: this kernel has no filters, -ENOMEM: there
 * was no memory to make it.
 */
int syscalls__confine(enum syscalls_role role);
/* The number of the first call that the filter has refused; -1: none. */
int syscalls__refused(void);
/* Its name, or its number as text. Returns buf. */
char *syscalls__name(int number, char *buf, size_t len);
