/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Untrusted ELF files, for a process with privileges: a child without any (sandbox/sandbox.h) parses them and answers
 * requests. All files of one child belong to one process, because the author of one of them runs code in that
 * process. The answers are untrusted, too: the caller checks those that it uses. If the child ends without an answer
 * (its CPU time is limited for all its files together), the request is repeated once, to a new child. Two kinds of
 * errors are distinguished: -ENOEXEC is an answer; -ETIMEDOUT, -EPIPE and -EPROTO mean that there is no answer.
 */
#pragma once

#include "elf/elf.h"

struct foreign;

#define FOREIGN_FILES	64 /* open in a child at once; any further file is opened again for each request */
#define FOREIGN_TEXTS	16
#define FOREIGN_SYMBOLS 96
#define FOREIGN_NAMES	8192 /* bytes of names in an answer */

struct foreign_text {
	u64 addr, size, offset; /* range and file offset of code, as of elf__text() and elf__offset() */
};

struct foreign_file {
	struct foreign *child;
	int fd; /* the caller's, open for as long as requests about the file are made; -1: the file can't be parsed */
	int error; /* every request then returns this */
	u32 timeouts; /* number of its requests that timed out */
	u32 number;
	struct foreign_text texts[FOREIGN_TEXTS];
	u32 n_texts;
};

/* The libraries that an object is linked with. Texts are valid as long as the struct. */
struct foreign_needed {
	char text[FOREIGN_NAMES];
	const char *rpath, *runpath; /* NULL: none */
	const char *names; /* one after the other, each with its NUL */
	u32 n;
};

/*
 * NULL: no memory. The child is forked at the first request. After *until (ms of message__now(), 0: no limit)
 * requests fail with -ETIMEDOUT, which does not count against the file; the caller may change *until between
 * requests. until: may be NULL.
 */
struct foreign *foreign__new(const u64 *until);
/* Ends the child and waits for it. NULL-safe. */
void foreign__free(struct foreign *f);

/* Returns 0, -ENOEXEC (not an ELF file of this machine) or another negative errno: the file can't be parsed. */
int foreign_file__open(struct foreign_file *file, struct foreign *f, int fd);
/*
 * As elf__find_symbols(), for up to FOREIGN_SYMBOLS sorted names: name is NULL for those that are not found. Returns
 * 0 or negative errno.
 */
int foreign_file__find_symbols(struct foreign_file *file, const char *const *names, u32 n, struct elf_symbol *out);
/* As elf__unwind() */
int foreign_file__unwind(struct foreign_file *file, u64 addr, struct elf_unwind *out);
/* Is the address in an exported function? */
bool foreign_file__is_exported(struct foreign_file *file, u64 addr);
bool foreign_file__defines_version(struct foreign_file *file, const char *name);
int foreign_file__needed(struct foreign_file *file, struct foreign_needed *out);
