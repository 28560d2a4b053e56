/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * SANITIZED is 1 in a build with AddressSanitizer, whose reports and leak checks open files, start threads and make
 * system calls that sonde itself never makes. Ask with `if`, so that the other branch is compiled as well.
 */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
