/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "core/event.h"

FAMILY(torture, 0x3e, FAMILY_ON_REQUEST, "calls that end in every way there is");

struct torture_placed {
	struct span span;
	u64 a DOC("the first argument");
	u64 b DOC("the second");
} EVENT(torture_placed, 0x3e01, "a call whose ends are found in the code");

struct torture_span {
	struct call call;
	u64 a DOC("the first argument");
	u64 b DOC("the second");
} EVENT(torture_span, 0x3e02, "a call whose return is probed");
