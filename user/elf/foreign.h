/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of others, for a process that has rights: a child without any (sandbox/sandbox.h) parses them and answers. The
 * files of one child belong to one process, as the author of one of them runs code in that process. What it answers is a claim of
 * the files: the caller checks what it uses of it. A question is repeated once, to a new child, where the child ends
 * without an answer (its CPU time is limited for all its files together). Errors are kept apart: -ENOEXEC is an answer,
 * and -ETIMEDOUT, -EPIPE or -EPROTO say that there is none.
 */
#ifndef SONDE_ELF_FOREIGN_H
#define SONDE_ELF_FOREIGN_H

#include "elf/elf.h"

struct foreign;

#define FOREIGN_FILES	64 /* that a child keeps open; a file beyond them that is asked about again is opened again */
#define FOREIGN_TEXTS	16
#define FOREIGN_SYMBOLS 96
#define FOREIGN_NAMES	8192 /* bytes of names in an answer */

struct foreign_text {
	u64 addr, size, offset; /* of code, as elf__text() and elf__offset() have it */
};

struct foreign_file {
	struct foreign *child;
	int fd; /* the caller's, to be open as long as the file is asked about; -1: it can't be parsed */
	int error; /* what every question returns then */
	u32 timeouts; /* of its questions */
	u32 number;
	struct foreign_text texts[FOREIGN_TEXTS];
	u32 n_texts;
};

/* What an object is linked with. Texts live as long as the struct. */
struct foreign_needed {
	char text[FOREIGN_NAMES];
	const char *rpath, *runpath; /* NULL: none */
	const char *names; /* one after the other, each with its NUL */
	u32 n;
};

/*
 * NULL: no memory. No child is forked before the first question. After *until (ms of message__now(), 0: no limit) questions
 * fail with -ETIMEDOUT, without prejudice to the file; the caller may change it between them. until: may be NULL.
 */
struct foreign *foreign__new(const u64 *until);
/* Ends the child and waits for it. NULL-safe. */
void foreign__free(struct foreign *f);

/* 0, -ENOEXEC: it is not an ELF file of this machine, or another negative errno: it can't be parsed. */
int foreign_file__open(struct foreign_file *file, struct foreign *f, int fd);
/* As elf__find_symbols(), of up to FOREIGN_SYMBOLS sorted names: name is NULL of those that are not found. 0 or negative errno. */
int foreign_file__find_symbols(struct foreign_file *file, const char *const *names, u32 n, struct elf_symbol *out);
/* As elf__unwind() */
int foreign_file__unwind(struct foreign_file *file, u64 addr, struct elf_unwind *out);
/* Is the address in an exported function? */
bool foreign_file__is_exported(struct foreign_file *file, u64 addr);
bool foreign_file__defines_version(struct foreign_file *file, const char *name);
int foreign_file__needed(struct foreign_file *file, struct foreign_needed *out);

#endif
