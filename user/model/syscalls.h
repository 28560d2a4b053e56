/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What reports need to know about system calls beyond their names. */
#pragma once

#include "schema/schema.h"

/*
 * Returns whether it is a system call that the kernel puts at a probed function's entry or return (x86-64, Linux 6.11
 * on): a cost of tracing, not made by the program. nr: the field of that name; NULL: false.
 */
bool syscalls__is_of_probe(const struct schema_field *nr, s64 value);
/* Returns a call's name without its "SYS_": "read"; that of a 32-bit call is "SYS32_read". NULL: it has none. */
const char *syscalls__known_name(const struct schema_field *nr, s64 value);
/* Returns "read", "ia32 read" or, for a number without a name in the recording machine's headers, "syscall 467". */
const char *syscalls__title(const struct schema_field *nr, u32 value, char *buf, size_t size);
