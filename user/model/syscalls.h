/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What reports need to know about system calls beyond their names. */
#ifndef SONDE_MODEL_SYSCALLS_H
#define SONDE_MODEL_SYSCALLS_H

#include "schema/schema.h"

/*
 * Is it one of the calls that the kernel makes of a probed function's return or entry (x86-64, from Linux 6.11 and 6.18
 * on)? The program did not make it: it is part of what tracing costs. nr: the field of that name, NULL: false.
 */
bool syscalls__is_of_probe(const struct schema_field *nr, s64 value);

#endif
