/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of others, for a process that has rights: a child without any (sandbox/sandbox.h) parses them and answers. The
 * files of one process share a child, as who wrote one of them runs code in that process. What it answers is a claim of
 * the files: the caller checks what it uses of it. A child that crashes or does not answer costs the file that was asked about.
 */
#ifndef SONDE_ELF_FOREIGN_H
#define SONDE_ELF_FOREIGN_H

#include "elf/elf.h"

struct foreign;

#define FOREIGN_TEXTS	16
#define FOREIGN_SYMBOLS 96
#define FOREIGN_NAMES	8192 /* bytes of names in an answer */

struct foreign_text {
	u64 addr, size, offset; /* of code, as elf__text() and elf__offset() have it */
};

struct foreign_file {
	struct foreign *child;
	int fd; /* the caller's, to be open as long as the file is asked about; -1: it can't be parsed */
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

/* NULL: no memory. No child is forked before the first question. */
struct foreign *foreign__new(void);
/* Ends the child and waits for it. NULL-safe. */
void foreign__free(struct foreign *f);

/* 0, or negative errno: it is not an ELF file of this machine, or can't be parsed. */
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
