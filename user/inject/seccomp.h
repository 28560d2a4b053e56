/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a thread's seccomp filters would do to the system calls that loading the library needs. */
#pragma once

#include "inject/tracee.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

/*
 * For a stopped thread. Returns 0: all calls pass; -EPERM: some do not, -EACCES: the filters can't be read. why (of
 * size len) has the reason.
 */
int seccomp__check(const struct tracee *t, char *why, size_t len);

/* The result of one filter for a call: SECCOMP_RET_.. The result for an invalid program is to kill. */
u32 seccomp__run(const struct sock_filter *filter, u32 n, const struct seccomp_data *data);
