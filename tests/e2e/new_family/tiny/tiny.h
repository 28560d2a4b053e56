/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The example of docs/adding-a-family.md; tests/e2e/test_new_family.sh builds it. */
#pragma once

#include "core/event.h"

FAMILY(tiny, 0x3f, FAMILY_ON_REQUEST, "calls of libtiny");

struct tiny_work {
	struct call call;
	u64 bytes UNIT(bytes) DOC("requested");
} EVENT(tiny_work, 0x3f01, "a piece of work");

struct tiny_fork {
	struct event event;
	u32 child_pid UNIT(task);
} EVENT(tiny_fork, 0x3f02, "a thread or process was created");
