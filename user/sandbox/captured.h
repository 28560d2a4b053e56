/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests (SONDE_TEST=captured): makes the system calls that a process would make after something it reads has taken it
 * over, and prints what came of each. docs/security.md says what is refused.
 */
#ifndef SONDE_SANDBOX_CAPTURED_H
#define SONDE_SANDBOX_CAPTURED_H

void captured__try_files(void);
void captured__try_kernel(void);
/* Both, and what concerns other processes. */
void captured__try_calls(void);
/* One line: "captured: WHAT: done" or the error. */
void captured__print(const char *what, long result);

#endif
