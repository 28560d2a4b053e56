/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols that a stripped file has elsewhere: looked for where Debian, Fedora and GDB put them, and on servers if asked for. */
#ifndef SONDE_ELF_DEBUG_H
#define SONDE_ELF_DEBUG_H

#include "elf/elf.h"

struct debug_search {
	u32 pid; /* a process that sees the file at path, in whose root debug files are looked for first; 0: none */
	const char *path;
	int (*fetch)(const char *build_id,
		     void *arg); /* from a server: a descriptor or negative errno; NULL: none is asked */
	/*
	 * Opens an ELF file in a process's root (pid 0: in this one's), -EPERM: it is not to be trusted, -EREMOTE: it lies on a remote file system; NULL: as this
	 * process may.
	 */
	int (*open)(u32 pid, const char *path, void *arg);
	void *arg;
};

/*
 * Adds what there is to the symbols of elf: .gnu_debugdata, the debug file by
 * build id, by .gnu_debuglink, from a server. 0, or -ENOENT: nothing was found; why
 * (of size len) then says which file was not trusted, or what a server answered, "" if neither.
 */
int debug__add(struct elf *elf, const struct debug_search *s, char *why, size_t len);

/* Can servers be asked? 0, or negative errno with a message that says what is missing. */
int debug__check_servers(char *err, size_t len);

#endif
