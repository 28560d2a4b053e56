/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The code mappings of a process, and the addresses of functions in them. The files are untrusted. */
#pragma once

#include "core/types.h"
#include "elf/foreign.h"

#include <stddef.h>

#define SPACE_DANGERS 48
#define SPACE_AUXV    1024
#define SPACE_FILES   32

struct code {
	u64 start, end, offset; /* as mapped */
	u64 dev, ino;
	char *path;
	/* the file is opened at the first use */
	bool opened;
	int fd;
	bool readable;
	int error; /* why the file can't be read, negative errno */
	u32 timeouts;
	struct foreign_file file;
	u64 bias; /* the load bias: added to addresses of the file */
	/* functions during which no call may be made, as addresses in the process; searched at the first use */
	bool searched;
	int unknown; /* negative errno: there was no answer about the file, so all its code counts as dangerous */
	struct danger {
		u64 start, end;
	} dangers[SPACE_DANGERS];
	u32 n_dangers;
};

struct space {
	u32 pid;
	/* as long as the process of this pidfd lives, its pid is not reused; -1: not opened */
	int pidfd;
	/*
	 * /proc/PID/mem, which refers to the address space: after an exec it does not refer to the new one; -1: not
	 * opened
	 */
	int memory;
	struct code *codes;
	u32 n;
	/* the children that parse files, one for each SPACE_FILES codes, which share its CPU time; NULL: not started */
	struct foreign **parsers;
	u64 until; /* time limit of all questions about files: ms of message__now(), 0: none */
	bool remote_files; /* also open files on remote file systems */
	const char *remote; /* name of a remote file system on which a file was not opened; NULL: none */
	/* changes with an exec: addresses of program, loader, stack and vdso */
	u8 auxv[SPACE_AUXV];
	size_t auxv_size;
};

#define SPACE_NONE ((struct space){ .pidfd = -1, .memory = -1 })

/* Reads the mappings, without a change of what space__open opened. Returns 0 or negative errno. */
int space__read(struct space *s, u32 pid);
void space__free(struct space *s);
/*
 * Opens pidfd and memory; what can't be opened stays -1. Call it before anything is read from the process, and with
 * all capabilities, because the memory's file belongs to the process's user.
 */
void space__open(struct space *s, u32 pid);
/* For a stopped thread: is the program still the one that was read, and the thread one of the process? */
bool space__is_current(const struct space *s, u32 tid);
/* Is a file with these numbers mapped as code, with a name that begins like this? */
bool space__maps_file(const struct space *s, const char *name, u64 dev, u64 ino);
/* The mapping around an address, or the first one whose file name begins like this; NULL: none. */
struct code *space__at(struct space *s, u64 addr);
struct code *space__library(struct space *s, const char *name);
/* A file name without its folder, and without the suffix of a memfd. */
const char *code__name(const struct code *c);
/* Sets the time limit for all questions about files from now on together. */
void space__limit(struct space *s, u32 ms);
/* Has the time limit passed? */
bool space__is_late(const struct space *s);
/* Makes a child parse the file unless that was done before. false: the file can't be read; c->error has the reason. */
bool code__open(struct space *s, struct code *c);
/* The address of a function in the process; 0: none. */
u64 code__function(struct space *s, struct code *c, const char *name);
/* Reads and writes the process's memory, completely or not at all. Writing needs space__open. */
bool space__copy(const struct space *s, u64 from, void *to, size_t size);
bool space__write(const struct space *s, u64 to, const void *from, size_t size);
