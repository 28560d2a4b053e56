/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What reports need to know about system calls beyond their names. */
#ifndef SONDE_MODEL_SYSCALLS_H
#define SONDE_MODEL_SYSCALLS_H

#include "schema/schema.h"

/*
 * Returns whether it is a system call that the kernel puts at a probed function's entry or return (x86-64, Linux 6.11
 * on): a cost of tracing, not made by the program. nr: the field of that name; NULL: false.
 */
bool syscalls__is_of_probe(const struct schema_field *nr, s64 value);

#endif
