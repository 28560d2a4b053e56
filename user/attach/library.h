/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a file a library that a family probes? By what it holds: the process that maps it first chooses the path under which it
 * does so, and another user's bind mount must neither hide a library nor make one of another file.
 */
#ifndef SONDE_ATTACH_LIBRARY_H
#define SONDE_ATTACH_LIBRARY_H

#include "elf/elf.h"
#include "kernel/probes.h"

enum library_match {
	LIBRARY_NO,
	LIBRARY_YES,
	LIBRARY_OTHER, /* it exports functions of the library, but its DT_SONAME is another's */
};

/*
 * Its DT_SONAME begins with `library` ("libcudart.so"); or it has none, is no program, and exports one of the functions that
 * the programs name for this library, or what all the globs of one of them stand for.
 */
enum library_match library__match(struct elf *elf, const struct probes *probes, const char *library);
/* As library__match says LIBRARY_YES, by one function that the library always exports. */
bool library__is(struct elf *elf, const char *library, const char *function);

#endif
