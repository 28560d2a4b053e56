/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that -p names, their descendants, and the flags of each process in BPF. */
#pragma once

#include "core/maps.h"

#include <stddef.h>

struct session;

struct targets {
	int *pidfds; /* of the processes of -p, in this order; -1: it has ended */
	u32 n;
};

/* Called before loading: checks that the processes exist. */
int targets__open(struct session *s, char *err, size_t len);
/* Called while the program at fork is attached: later children inherit the flag, earlier ones are found here. */
void targets__select(struct session *s);
void targets__close(struct targets *t);
/* Returns whether -p names the process. */
bool targets__have(const struct session *s, u32 pid);
u32 process__get(const struct session *s, u32 pid);
void process__set(struct session *s, u32 pid, u32 flags);
void process__clear(struct session *s, u32 pid, u32 flags);
/* Returns whether the process is selected, or was recently and is being passed to the families (filter.c). */
bool process__is_passed_on(const struct session *s, u32 pid);
/* Returns whether the process is selected, or was when it ended; true if it is not known (pid 0). */
bool process__was_selected(const struct session *s, u32 pid);
