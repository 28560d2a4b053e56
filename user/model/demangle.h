/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of C++ and Rust, demangled by libiberty. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

#define DEMANGLED_MAX (32 << 10)

/* Too large for the stack: allocate it. */
struct demangled {
	char text[DEMANGLED_MAX];
	size_t len;
	jmp_buf too_long;
};

/* options: DMGL_... of libiberty. Returns false if the name is not mangled or too long. */
bool demangle(struct demangled *d, const char *mangled, int options);
/* Writes "srv::handle" for "_ZN3srv6handleEv", without parameters, and other names unchanged. Returns buf. */
char *demangle__short(const char *name, char *buf, size_t size);
