/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides whether a file is a library that a family probes, by the file's contents. Its path can't be trusted: the
 * first process that maps a file chooses the path, and another user's bind mount must neither hide a library nor make
 * another file look like one.
 */
#pragma once

#include "elf/elf.h"
#include "kernel/probes.h"

enum library_match {
	LIBRARY_NO,
	LIBRARY_YES,
	LIBRARY_OTHER, /* it exports functions of the library, but its DT_SONAME is that of another one */
};

/*
 * Returns LIBRARY_YES if the file's DT_SONAME begins with `library` ("libcudart.so"). A file without DT_SONAME that is
 * not a program matches if it exports one of the functions that the BPF programs name for this library, or for each
 * glob of one BPF program a function that matches it.
 */
enum library_match library__match(struct elf *elf, const struct probes *probes, const char *library);
/* The same, for a file without DT_SONAME by one function that the library always exports; true for LIBRARY_YES. */
bool library__is(struct elf *elf, const char *library, const char *function);
