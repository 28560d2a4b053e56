/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses the thread that makes the calls. */
#pragma once

#include "inject/inject.h"
#include "inject/space.h"
#include "inject/tracee.h"

/*
 * Stops a thread at a point where it can be made to call functions. Returns 0, or negative errno with the reason in
 * the result and no thread stopped.
 */
int choose__thread(struct space *s, struct tracee *t, bool force, struct inject_result *r);
