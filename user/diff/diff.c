// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff/diff_private.h"

#include <errno.h>
#include <string.h>

#include "model/texts.h"

u32 diff__text(struct diff *d, const char *text, int *err)
{
	u32 number = texts__number(&d->texts, text);

	*err = number ? *err : -ENOMEM;
	return number;
}

const char *diff__text_of(const struct diff *d, u32 number)
{
	const char *text = texts__text(&d->texts, number);

	return text ? text : "";
}

struct diff_measure *diff__measure(struct diff *d, const struct diff_key *key, u32 side, int *err)
{
	bool is_full = d->entries.n >= DIFF_ENTRIES_MAX;
	struct diff_entry *e = is_full ? map__find(&d->entries, key) : map__get(&d->entries, key);

	if (!e && is_full)
		d->left_out++;
	else if (!e)
		*err = -ENOMEM;
	return e ? &e->side[side] : NULL;
}

u32 diff__bin(const struct diff *d, u32 side, u64 time)
{
	struct trace_window w = query__window(d->q[side]);
	double part = w.to > w.from && time > w.from ? (double)(time - w.from) / (double)(w.to - w.from) : 0;

	return part < 1 ? (u32)(part * NOISE_BINS) : NOISE_BINS - 1;
}

static void free_entries(struct diff *d)
{
	MAP_EACH(struct diff_entry *e, &d->entries)
		for (u32 side = 0; side < DIFF_SIDES; side++)
			stats__free(&e->side[side].times, &d->pool);
	map__free(&d->entries);
}

int diff__run(const struct query *const sides[DIFF_SIDES], struct report_output *out)
{
	struct diff d = { 0 };
	int err = 0;

	texts__init(&d.texts);
	map__init(&d.processes, sizeof(u32), sizeof(struct diff_process));
	map__init(&d.entries, sizeof(struct diff_key), sizeof(struct diff_entry));
	for (u32 side = 0; side < DIFF_SIDES; side++) {
		d.q[side] = sides[side];
		d.seconds[side] = (double)query__duration(sides[side]) / 1e9;
		d.measured[side] = (double)query__measured(sides[side]) / 1e9;
	}
	for (u32 side = 0; !err && side < DIFF_SIDES; side++) {
		err = diff_threads__read(&d, side);
		if (!err)
			err = diff_calls__read(&d, side);
	}
	if (!err) {
		diff__compare(&d);
		diff__output(&d, out);
	}
	for (u32 side = 0; side < DIFF_SIDES; side++)
		findings__free(d.findings[side]);
	free_entries(&d);
	MAPS_FREE(&d.processes, &d.texts);
	return err;
}
