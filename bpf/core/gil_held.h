/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Whether a thread held its interpreter's GIL at some moment. */
enum gil_held {
	GIL_HELD_UNKNOWN = 0, /* no Python, a thread without a thread state, unreadable memory, or not read */
	GIL_HELD_YES = 1,
	GIL_HELD_NO = 2,
};
