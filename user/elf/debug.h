/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols of a stripped file from separate debug files: searched where Debian, Fedora and GDB put them. */
#pragma once

#include "elf/elf.h"

struct debug_search {
	u32 pid; /* a process that sees the file at `path`; its root is searched first; 0: none */
	const char *path;
	/*
	 * Opens an ELF file in a process's root (pid 0: in this process's). -EPERM: the file is not trusted;
	 * -EREMOTE: it lies on a remote file system. NULL: files are opened with the rights of this process.
	 */
	int (*open)(u32 pid, const char *path, void *arg);
	void *arg;
};

/*
 * Adds all symbols that are found to those of elf: from .gnu_debugdata, from the debug file by build id or by
 * .gnu_debuglink. Returns 0, or -ENOENT if nothing was found; why (of size len) then says which file was not trusted,
 * else "".
 */
int debug__add(struct elf *elf, const struct debug_search *s, char *why, size_t len);
