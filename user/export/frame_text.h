/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How functions of stacks are written in other programs' formats. */
#ifndef SONDE_EXPORT_FRAME_TEXT_H
#define SONDE_EXPORT_FRAME_TEXT_H

#include "export/calls.h"

/* "iterencode (encoder.py)", "memcpy (libc.so.6)", "do_futex_[k]", on one line and in UTF-8; malloc'ed, NULL: no memory. */
char *frame_text__function(const struct call_function *f);
/* The last part of a path. */
const char *frame_text__file(const char *path);

#endif
