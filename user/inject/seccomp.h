/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a thread's seccomp filters would do to the system calls that loading the library takes. */
#ifndef SONDE_INJECT_SECCOMP_H
#define SONDE_INJECT_SECCOMP_H

#include "inject/tracee.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

/* Of a thread that is stopped. 0: they let all pass; -EPERM: they do not, -EACCES: they can't be read. why (of size len) says it. */
int seccomp__check(const struct tracee *t, char *why, size_t len);

/* What one filter says of a call: SECCOMP_RET_.. A program that makes no sense kills, and ends. */
u32 seccomp__run(const struct sock_filter *filter, u32 n, const struct seccomp_data *data);

#endif
