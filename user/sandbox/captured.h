/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests (SONDE_TEST=captured): makes the system calls that a process could try after its input has compromised
 * it, and prints the results. docs/security.md lists what is refused.
 */
#pragma once

void captured__try_files(void);
void captured__try_kernel(void);
/* The calls that every process tries, and those that concern other processes. */
void captured__try_calls(void);
/* Prints one line: "captured: WHAT: done" or the error. */
void captured__print(const char *what, long result);
