// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes changes as sentences. */
#include <stdio.h>

#include "diff/diff_private.h"
#include "output/text.h"

/* "srv.py", "srv.py (other threads)" */
static char *role_text(const struct diff *d, const struct diff_key *key, char *buf, size_t size)
{
	if (key->thread)
		snprintf(buf, size, "%s (%s)", diff__text_of(d, key->process), diff__text_of(d, key->thread));
	else
		snprintf(buf, size, "%s", diff__text_of(d, key->process));
	return buf;
}

/* " 2.01 times as much"; " only in trace after" */
static char *times(const struct diff_figure *f, const char *more, char *buf, size_t size)
{
	double before = f->side[DIFF_BEFORE], after = f->side[DIFF_AFTER];

	if (before > 0 && after > 0)
		snprintf(buf, size, " %.2f times %s", after / before, more);
	else
		snprintf(buf, size, " only in trace %s", before > 0 ? "before" : "after");
	return buf;
}

/* Adds ": 40.2% of the time instead of 20.0% (+20.2; noise explains up to 1.9)". */
static void add_rates(struct text_buffer *s, const struct diff_figure *f, const char *of)
{
	double difference = f->side[DIFF_AFTER] - f->side[DIFF_BEFORE];

	text__add(s, ": %.1f%% of %s instead of %.1f%% (%+.1f; noise explains up to %.1f)", f->side[DIFF_AFTER] / 1e7,
		  of, f->side[DIFF_BEFORE] / 1e7, difference / 1e7, f->noise / 1e7);
}

static void add_calls(struct text_buffer *s, const struct diff_entry *e)
{
	const struct diff_measure *a = &e->side[DIFF_BEFORE], *b = &e->side[DIFF_AFTER];
	char text[64];

	if (!a->times.count || !b->times.count) {
		text__add(s, " %s: %.1f calls a second instead of %.1f, %s each",
			  b->times.count ? "was called" : "was not called any more", e->count.side[DIFF_AFTER],
			  e->count.side[DIFF_BEFORE], TEXT_NS((u64)(b->times.count ? b->times.mean : a->times.mean)));
		return;
	}
	if (e->mean.is_change)
		text__add(s, " took%s", times(&e->mean, "as long", text, sizeof(text)));
	if (e->count.is_change)
		text__add(s, "%s was called%s", e->mean.is_change ? ", and" : "",
			  times(&e->count, "as often", text, sizeof(text)));
	if (!e->mean.is_change && !e->count.is_change)
		text__add(s, " took%s in all", times(&e->rate, "as long", text, sizeof(text)));
	text__add(s, ": %s on average instead of %s (p99 %s instead of %s), %.1f calls a second instead of %.1f",
		  TEXT_NS((u64)e->mean.side[DIFF_AFTER]), TEXT_NS((u64)e->mean.side[DIFF_BEFORE]),
		  TEXT_NS(stats__percentile((struct stats *)&b->times, 99)),
		  TEXT_NS(stats__percentile((struct stats *)&a->times, 99)), e->count.side[DIFF_AFTER],
		  e->count.side[DIFF_BEFORE]);
}

static void add_function(struct text_buffer *s, const struct diff *d, const struct diff_key *key,
			 const struct diff_entry *e, const char *role)
{
	char text[64];

	text__add(s, "%s of %s ran on a CPU%s", diff__text_of(d, key->name), role,
		  times(&e->rate, "as long", text, sizeof(text)));
	add_rates(s, &e->rate, "a CPU");
}

static void add_time(struct text_buffer *s, const struct diff *d, const struct diff_key *key,
		     const struct diff_entry *e, const char *role)
{
	const char *in = diff__text_of(d, key->name);
	char phrase[128], text[64];

	text__add(s, "%s %s%s%s%s", role, finding_kind__phrase(key->kind, phrase, sizeof(phrase)),
		  key->name ? " in " : "", in, times(&e->rate, "as long", text, sizeof(text)));
	add_rates(s, &e->rate, "the time");
}

char *diff_text__change(const struct diff *d, const struct diff_key *key, const struct diff_entry *e, char *buf,
			size_t size)
{
	struct text_buffer s = { .buf = buf, .size = size };
	char role[512];

	role_text(d, key, role, sizeof(role));
	if (key->section == DIFF_FUNCTIONS) {
		add_function(&s, d, key, e, role);
	} else if (key->section == DIFF_CALLS) {
		text__add(&s, "%s of %s", diff__text_of(d, key->name), role);
		add_calls(&s, e);
	} else {
		add_time(&s, d, key, e, role);
	}
	text__add(&s, ".");
	return buf;
}
