/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a file a library that a family probes? This is decided by its contents: the process that maps a file first
 * chooses the path under which it does so, and another user's bind mount must neither hide a library nor make another
 * file look like one.
 */
#ifndef SONDE_ATTACH_LIBRARY_H
#define SONDE_ATTACH_LIBRARY_H

#include "elf/elf.h"
#include "kernel/probes.h"

enum library_match {
	LIBRARY_NO,
	LIBRARY_YES,
	LIBRARY_OTHER, /* it exports functions of the library, but its DT_SONAME is that of another one */
};

/*
 * True if its DT_SONAME begins with `library` ("libcudart.so"); or if it has none, is not a program, and exports one
 * of the functions that the programs name for this library, or a match of each glob of one program.
 */
enum library_match library__match(struct elf *elf, const struct probes *probes, const char *library);
/* The same by one function that the library always exports; true for LIBRARY_YES. */
bool library__is(struct elf *elf, const char *library, const char *function);

#endif
