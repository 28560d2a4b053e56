/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Formats functions of stacks for other programs. */
#pragma once

#include "export/calls.h"

/* Limit for a frame's name or path: a small trace may repeat one long name in many frames. */
#define FRAME_TEXT_MAX 4096

/* Returns "iterencode (encoder.py)", "memcpy (libc.so.6)", "do_futex_[k]": one line, malloc'ed; NULL without memory. */
char *frame_text__function(const struct call_function *f);
