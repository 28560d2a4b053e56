/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a C struct of an ELF file has its members, by the file's own DWARF.
 *
 * libdw believes what a file says, and the file belongs to the user who runs the
 * target: so a child process asks it, one without privileges and with limits on
 * time and memory. If the file makes it crash or spin, the answer is an error.
 */
#ifndef SONDE_ELF_DWARF_H
#define SONDE_ELF_DWARF_H

#include "elf/elf.h"
#include "sandbox/sandbox.h"

#define DWARF_MEMBERS 16

struct dwarf_member {
	const char *name;
	u64 size; /* bytes that it must have */
	u64 offset; /* the answer, in bytes */
};

/*
 * In this process. 0, -ENODATA (no DWARF), -ENOENT (no such struct), -ENOKEY (no such
 * member), -EPROTO (a member of another size, or not in the struct) or negative errno.
 */
int dwarf__members(int fd, const char *type, struct dwarf_member *members, u32 n);

struct dwarf_job {
	bool running;
	struct sandbox child;
};

/*
 * In a child of the server (NULL: of this process, which must wait for its children itself). fd may be closed meanwhile. n is at
 * most DWARF_MEMBERS. 0 or negative errno.
 */
int dwarf_job__start(struct dwarf_job *job, struct forkserver *server, int fd, const char *type,
		     const struct dwarf_member *members, u32 n);
/*
 * Waits at least so long. -EAGAIN: not done. Else as dwarf__members, or -EFAULT: the child crashed or was killed by its limits; and
 * the job is over.
 */
int dwarf_job__poll(struct dwarf_job *job, int timeout_ms, struct dwarf_member *members, u32 n);
/* Ends a job that is running. */
void dwarf_job__give_up(struct dwarf_job *job);

/* The question to the child: its kind distinguishes it from the server's other questions. */
#define DWARF_QUESTION 0x44574152

struct dwarf_question {
	u32 kind; /* DWARF_QUESTION */
	u32 n;
	char type[64];
	struct {
		char name[64];
		u64 size;
	} members[DWARF_MEMBERS];
};

/* The child's answer. fd: the file. */
void dwarf_job__answer(int sock, const struct dwarf_question *q, int fd);
/* An error of these in words. */
const char *dwarf__error(int err);

#endif
