/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What math_calls.c shares with the files that read calls of one library. */
#pragma once

#include "model/math_calls.h"

struct math_call {
	struct math_key key;
	u32 pid, tid;
	u64 start, end;
	bool returned, failed, is_complex;
};

/* Fills what all calls have in common. 0 or -ENOMEM */
int math_call__of(struct math_calls *a, const struct view *v, const struct common_fields *f, struct math_call *c);
/* Counts a call. 0 or -ENOMEM */
int math_calls__add(struct math_calls *a, const struct math_call *c);
/* Reads the calls of cuDNN. 0 or negative errno */
int math_cudnn__read(struct math_calls *a);
