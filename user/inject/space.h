/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process has mapped that holds code, and where functions are in it. Its files are untrusted. */
#ifndef SONDE_INJECT_SPACE_H
#define SONDE_INJECT_SPACE_H

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
	/* opened when first asked for */
	bool opened;
	int fd;
	bool readable;
	int error; /* it is not readable: why, negative errno */
	u32 timeouts;
	struct foreign_file file;
	u64 bias; /* what the process adds to the file's addresses */
	/* functions in which no call may be made, by addresses in the process; sought when first asked for */
	bool sought;
	int unknown; /* negative errno: the file could not be asked for them, so that any of its code may be one */
	struct danger {
		u64 start, end;
	} dangers[SPACE_DANGERS];
	u32 n_dangers;
};

struct space {
	u32 pid;
	/* While the process of this pidfd lives, the number is that process's. -1: not opened */
	int pidfd;
	/* /proc/PID/mem, which belongs to the address space and not to what an exec puts in its stead. -1: not opened */
	int memory;
	struct code *codes;
	u32 n;
	/* one for SPACE_FILES codes, which share its child's CPU time; NULL: none of them was asked about */
	struct foreign **parsers;
	u64 until; /* when what is asked about the files has to be answered: ms of message__now(), 0: no limit */
	bool remote_files; /* opens files on file systems that are served remotely */
	const char *remote; /* the name of one where a file was not opened for that, NULL: none was */
	/* what an exec changes: where program, loader, stack and vdso are */
	u8 auxv[SPACE_AUXV];
	size_t auxv_size;
};

#define SPACE_NONE ((struct space){ .pidfd = -1, .memory = -1 })

/* Fills what is mapped; keeps what space__open opened. 0 or negative errno. */
int space__read(struct space *s, u32 pid);
void space__free(struct space *s);
/*
 * Opens pidfd and memory: before anything is read of the process, and with all
 * capabilities, because the memory's file belongs to its user. What can't be opened stays -1.
 */
void space__open(struct space *s, u32 pid);
/* Is it still the program that was read, and the thread one of its process? Of a thread that is stopped. */
bool space__is_current(const struct space *s, u32 tid);
/* Is a file with these numbers mapped as code, under a name that begins like this? */
bool space__maps_file(const struct space *s, const char *name, u64 dev, u64 ino);
/* The mapping around an address, or the first whose file name begins like this; NULL: none. */
struct code *space__at(struct space *s, u64 addr);
struct code *space__library(struct space *s, const char *name);
/* A file name without folder, and without what a memfd adds. */
const char *code__name(const struct code *c);
/* What is asked about the files from now on is to be answered within this time, all of it together. */
void space__limit(struct space *s, u32 ms);
/* Is that time up? */
bool space__is_late(const struct space *s);
/* Has a child parsed it, so that it can be asked about? false: it can't be read, and c->error says why. */
bool code__open(struct space *s, struct code *c);
/* The address in the process of a function, 0: none. */
u64 code__function(struct space *s, struct code *c, const char *name);
/* Reads and writes the process's memory: all of it or not. Writing needs space__open. */
bool space__copy(const struct space *s, u64 from, void *to, size_t size);
bool space__write(const struct space *s, u64 to, const void *from, size_t size);

#endif
