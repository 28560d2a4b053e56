/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which thread is borrowed. */
#ifndef SONDE_INJECT_CHOOSE_H
#define SONDE_INJECT_CHOOSE_H

#include "inject/inject.h"
#include "inject/space.h"
#include "inject/tracee.h"

/* A thread, stopped where calls may be made: 0, or negative errno with the reason in the result and nothing held. */
int choose__thread(struct space *s, struct tracee *t, bool force, struct inject_result *r);

#endif
