/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offsets of the members of a C struct, from the DWARF of an ELF file.
 *
 * libdw trusts what a file says, and the file belongs to the user who runs the target. So a child process without
 * privileges and with limits on time and memory calls libdw. If the file makes it crash or loop, the answer is an
 * error.
 */
#pragma once

#include "elf/elf.h"
#include "sandbox/sandbox.h"

#define DWARF_MEMBERS 16

struct dwarf_member {
	const char *name;
	u64 size; /* expected size in bytes */
	u64 offset; /* output, in bytes */
};

/*
 * Reads in this process. Returns 0, -ENODATA (no DWARF), -ENOENT (no such struct), -ENOKEY (no such member), -EPROTO
 * (a member with another size, or outside of the struct) or negative errno.
 */
int dwarf__members(int fd, const char *type, struct dwarf_member *members, u32 n);

struct dwarf_job {
	bool running;
	struct sandbox child;
};

/*
 * Starts reading in a child of the server (NULL: of this process, which must wait for its children itself). The
 * caller may close fd afterwards. n is at most DWARF_MEMBERS. Returns 0 or negative errno.
 */
int dwarf_job__start(struct dwarf_job *job, struct forkserver *server, int fd, const char *type,
		     const struct dwarf_member *members, u32 n);
/*
 * Waits up to timeout_ms. Returns -EAGAIN if the job is not done. Otherwise the job is over, with a result as of
 * dwarf__members, or -EFAULT: the child crashed or was killed by its limits.
 */
int dwarf_job__poll(struct dwarf_job *job, int timeout_ms, struct dwarf_member *members, u32 n);
/* Ends a job that is running. */
void dwarf_job__cancel(struct dwarf_job *job);

/* The first field of a request to the child; it distinguishes this request from the server's others. */
#define DWARF_REQUEST 0x44574152

struct dwarf_request {
	u32 kind; /* DWARF_REQUEST */
	u32 n;
	char type[64];
	struct {
		char name[64];
		u64 size;
	} members[DWARF_MEMBERS];
};

/* Runs in the child: sends the answer. fd: the file. */
void dwarf_job__answer(int sock, const struct dwarf_request *q, int fd);
/* The text of an error of these functions. */
const char *dwarf__error(int err);
