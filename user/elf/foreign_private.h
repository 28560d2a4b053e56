/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by foreign.c, which sends requests, and foreign_child.c, which answers them. */
#pragma once

#include "elf/foreign.h"

enum foreign_op { FOREIGN_OPEN, FOREIGN_FIND, FOREIGN_UNWIND, FOREIGN_EXPORTED, FOREIGN_VERSION, FOREIGN_NEEDED };

/* The file's descriptor is passed with the message. */
struct foreign_question {
	u32 op; /* enum foreign_op */
	u32 number; /* of the file */
	u64 value; /* an address */
	u32 n; /* number of names */
	u32 size; /* bytes of the names, with their NULs */
	char text[4096];
};

#define FOREIGN_QUESTION_HEAD 24

struct foreign_symbol {
	u64 addr, size, offset;
	u8 found, dynamic, default_version, function; /* 0 or 1 */
};

/* Only the used part is sent. */
struct foreign_answer {
	s32 result;
	u32 n;
	union {
		struct foreign_text texts[FOREIGN_TEXTS];
		struct foreign_symbol symbols[FOREIGN_SYMBOLS];
		struct elf_unwind unwind;
		char text[FOREIGN_NAMES]; /* RPATH and RUNPATH, then n names */
	};
};

#define FOREIGN_ANSWER_HEAD 8

/* The child's main function. */
void foreign__serve(int sock, void *arg);
