/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `sonde top`: its data (top.c, which also prints lines) and its screen (top_screen.c). */
#pragma once

#include "model/live.h"

enum top_sort { TOP_SELF, TOP_TOTAL, TOP_SORTS };

struct top_status {
	u64 lost; /* records, so far */
	double targets_percent, own_percent; /* of one CPU: what tracing costs, so far */
	bool sampling;
	bool has_figures; /* false: the first interval has not ended */
	const char *finding; /* the first finding of the interval, "" if there is none */
	const char *message; /* the last warning, "" if there was none */
};

/* The action of a key. */
enum top_key { TOP_NOTHING, TOP_QUIT, TOP_REDRAW };

/* Reads the terminal's description before the session starts, after which no file may be opened. */
void top_screen__prepare(void);
/* Takes over the terminal; returns false if it cannot. top_screen__close restores the terminal in any case. */
bool top_screen__open(void);
void top_screen__close(void);
/* Draws a view in the selected sort order. */
void top_screen__draw(const struct live_view *v, const struct top_status *status);
/* Reads a typed key. */
enum top_key top_screen__key(void);
bool top_screen__paused(void);

/* Sorts a view's functions. */
void top__sort(struct live_view *v, enum top_sort sort);
