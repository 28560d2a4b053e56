/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which system calls a process of sonde may still make. The filters deny by default (docs/security.md has what
 * they allow). Opening a file by its path is answered with EACCES where the filter does not allow it, because
 * libraries try to and do without. Any other call that is not allowed is answered with EPERM, noted, and can be
 * asked for by syscalls__refused(): the caller ends with an error that names it.
 */
#ifndef SONDE_SANDBOX_SYSCALLS_H
#define SONDE_SANDBOX_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>

enum syscalls_role {
	SYSCALLS_WORKER,
	SYSCALLS_FETCHER, /* asks debuginfod servers: sockets, and files of its own user */
	SYSCALLS_ATTACHER,
	SYSCALLS_PERF, /* an attacher whose probes are perf events */
	SYSCALLS_READER, /* reads traces that are open and prints */
	SYSCALLS_SOURCES, /* the same, and opens files by their paths for reading */
	SYSCALLS_OBSERVER, /* doctor: opens files by their paths for reading, looks at processes */
	SYSCALLS_INJECTOR, /* traces a process and opens files, also to write; it creates none */
};

/* Installs the filter, for good. 0 or negative errno; -ENOSYS: this kernel has none. */
int syscalls__confine(enum syscalls_role role);
/* The number of the first call that the filter has refused, -1: none. */
int syscalls__refused(void);
/* Its name, or its number as text. Returns buf. */
char *syscalls__name(int number, char *buf, size_t len);

#endif
