/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slices of time in which waits for the GIL were measured (events gil_slice). For model/gil.c. */
#pragma once

#include "model/gil.h"

struct gil_slice_list {
	struct gil_measured {
		u64 from, to;
		u64 pause,
			pause_after; /* ns before and after the slice that were not measured and that it represents */
	} * slices;
	u32 n;
	u64 from, to; /* the selected time; to 0: no limit */
};

/* Reads the slices around the selected time, which matter up to `margin` ns outside of it. 0 or negative errno. */
int gil_slice_list__read(struct gil_slice_list *l, struct trace *t, u64 from, u64 to, u64 margin);
void gil_slice_list__free(struct gil_slice_list *l);

/* Returns the number of the slice at a time, from 1; 0: none. */
u32 gil_slice_list__at(const struct gil_slice_list *l, u64 time);
/* Returns by how much the figures of a slice are multiplied; 1 for number 0. */
double gil_slice_list__weight(const struct gil_slice_list *l, u32 number);
/* Returns the part of an interval that lies in the selected time, ns. */
u64 gil_slice_list__selected_ns(const struct gil_slice_list *l, u64 from, u64 to);
/* Returns how much of the selected time was not measured, ns. */
u64 gil_slice_list__paused(const struct gil_slice_list *l);
