// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/losses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/meta.h"
#include "output/text.h"
#include "trace/loss.h"
#include "util/array.h"

/* A sum is reported as too low from this percentage on; less is within the machine's noise. */
#define LOW_PERCENT 1.0

/* Number of a family's attach gaps that have a line each */
#define GAPS_SHOWN 3

#define FAMILY_CORE 0x00
#define FAMILY_GPU  0x0d

const char *loss__reason(s64 reason)
{
	static const char *const texts[LOSS_REASONS] = {
		[LOSS_RING_FULL] = "ring full",
		[LOSS_STORAGE] = "no memory for a thread's state",
		[LOSS_DEPTH] = "calls nested too deep",
		[LOSS_RECURSION] = "probe skipped inside another probe",
		[LOSS_RETURN] = "return not seen",
		[LOSS_MAP_FULL] = "a table in the kernel was full",
		[LOSS_MMAP] = "mappings missed",
		[LOSS_ATTACH_GAP] = "before the library was probed",
		[LOSS_READ] = "the target's memory could not be read",
		[LOSS_REFUSED] = "of an unknown kind or size",
		[LOSS_TORN] = "a stack changed while it was read, or was invalid",
		[LOSS_NESTED] = "the thread's stack was already being read",
		[LOSS_RATE] = "more stacks than an option of the family allows to be read",
		[LOSS_LATE] = "the recording ended before sonde had handled it",
		[LOSS_SOURCE] = "what is read at intervals could not be read",
		[LOSS_BUDGET] = "left out, as it exceeds sonde's limit of memory or can't be parsed",
		[LOSS_UNPROBED] = "functions of the library have no probes",
		[LOSS_UNKNOWN] = "the process had just started or had ended, or its Python's stacks can't be read",
		[LOSS_SHARE] =
			"not examined at once: that takes long, or new files of its user took more than that user's share of a CPU",
	};

	return reason > 0 && reason < LOSS_REASONS && texts[reason] ? texts[reason] :
								      "for a reason unknown to this version";
}

void loss__join(struct loss *l, const struct loss *one)
{
	l->count += one->count;
	l->first = one->first < l->first ? one->first : l->first;
	l->last = one->last > l->last ? one->last : l->last;
}

int losses__add_to(struct loss **list, u32 *n, const struct loss *one)
{
	struct loss *l;

	for (u32 i = 0; i < *n; i++) {
		l = &(*list)[i];
		if (l->family != one->family || l->reason != one->reason || l->object != one->object ||
		    l->outside != one->outside)
			continue;
		loss__join(l, one);
		return 0;
	}
	return array__push(*list, *n, *one) ? 0 : -ENOMEM;
}

enum loss_effect loss__effect(const struct loss *l)
{
	switch (l->reason) {
	case LOSS_RETURN:
		return EFFECT_LENGTH;
	case LOSS_MMAP:
		return EFFECT_MAPPING;
	case LOSS_SHARE:
	case LOSS_BUDGET:
		/* for core a file has no probes; for other families stacks have no names */
		return l->family == FAMILY_CORE ? EFFECT_MAPPING : EFFECT_STACK;
	case LOSS_ATTACH_GAP:
		return EFFECT_GAP;
	case LOSS_UNPROBED:
		return EFFECT_UNPROBED;
	case LOSS_SOURCE:
		return EFFECT_READINGS;
	case LOSS_NESTED:
	case LOSS_RATE:
	case LOSS_UNKNOWN:
		return EFFECT_STACK;
	case LOSS_LATE:
	case LOSS_STORAGE:
	case LOSS_RING_FULL:
		/* core's records and per-thread state are frames of stacks */
		return l->family == FAMILY_CORE ? EFFECT_STACK : EFFECT_MISSING;
	case LOSS_READ:
	case LOSS_TORN:
		if (l->family == FAMILY_CORE)
			return EFFECT_STACK;
		/* other families' events are sent without the value; unreadable records of a GPU are lost */
		return l->family == FAMILY_GPU ? EFFECT_MISSING : EFFECT_DETAIL;
	default:
		return EFFECT_MISSING;
	}
}

u64 loss__records(const struct loss *l)
{
	return loss__is_of_library(l->reason) ? 0 : l->count;
}

double loss__percent(const struct loss *l)
{
	/* a reading has several records */
	if (l->outside || l->reason == LOSS_SOURCE)
		return 0;
	double lost = (double)loss__records(l), there = (double)l->recorded;

	/* missing events relate to all events that should be there, affected ones to the recorded events */
	if (loss__effect(l) == EFFECT_MISSING)
		there += lost;
	return !lost ? 0 : there > lost ? 100 * lost / there : 100;
}

/* Returns whether the loss touches the traced time, which figures are of. */
static bool is_inside(const struct loss *l, const struct loss_times *t)
{
	return !l->outside && (l->reason != LOSS_ATTACH_GAP || l->last > t->live || l->last <= l->first);
}

static char *percent_text(char *buf, size_t size, const char *bound, double percent)
{
	if (percent > 0 && percent < 0.1)
		snprintf(buf, size, "less than 0.1%%");
	else
		snprintf(buf, size, "%s%.1f%%", bound, percent);
	return buf;
}

/* Returns the percentage of the traced time that the gap takes. */
static double gap_percent(const struct loss *l, const struct loss_times *t)
{
	u64 from = l->first > t->live ? l->first : t->live, to = l->last < t->stop ? l->last : t->stop;

	return to > from && t->stop > t->live ? 100.0 * (double)(to - from) / (double)(t->stop - t->live) : 0;
}

char *loss__consequence(char *buf, size_t size, const struct loss *l, const struct loss_times *t)
{
	const char *family = l->family == FAMILY_CORE ? "all events" : l->family_name ? l->family_name : "its family";
	const char *of = l->family == FAMILY_CORE ? "" : "'s events";
	enum loss_effect effect = loss__effect(l);
	char share[32];

	if (l->outside) {
		snprintf(buf, size, "outside of the traced time: no count and no sum lacks them");
		return buf;
	}
	percent_text(share, sizeof(share), effect == EFFECT_MISSING || effect == EFFECT_STACK ? "at most " : "",
		     effect == EFFECT_GAP ? gap_percent(l, t) : loss__percent(l));
	switch (effect) {
	case EFFECT_MISSING:
		snprintf(buf, size, "%s of %s%s are missing: counts and sums may be too low by that", share, family,
			 of);
		break;
	case EFFECT_LENGTH:
		snprintf(buf, size, "counts hold, times of %s of %s%s may be too long", share, family, of);
		break;
	case EFFECT_DETAIL:
		snprintf(buf, size, "counts and times hold, %s of %s%s lack a detail", share, family, of);
		break;
	case EFFECT_STACK:
		snprintf(buf, size, "counts and times hold, %s of %s%s lack their stack or a part of it", share, family,
			 of);
		break;
	case EFFECT_MAPPING:
		snprintf(
			buf, size,
			"figures of what was probed hold, calls of a library that only such a process mapped are missing");
		break;
	case EFFECT_GAP:
		snprintf(buf, size, "%s of the traced time, calls that began later are all there", share);
		break;
	case EFFECT_READINGS:
		snprintf(buf, size, "the values that were read hold");
		break;
	case EFFECT_UNPROBED:
		snprintf(buf, size, "figures of other libraries hold");
		break;
	}
	return buf;
}

/* Returns the noun for what was lost. */
static const char *noun_of(const struct loss *l)
{
	bool one = l->count == 1;

	switch (loss__effect(l)) {
	case EFFECT_STACK:
		return one ? "stack" : "stacks";
	case EFFECT_MAPPING:
		return one ? "mapping" : "mappings";
	case EFFECT_LENGTH:
		return one ? "end" : "ends";
	case EFFECT_READINGS:
		return one ? "reading" : "readings";
	default:
		return one ? "record" : "records";
	}
}

/* What was lost when and why, and what that changes. Returns buf. */
static char *loss_text(char *buf, size_t size, const struct loss *l, const struct loss_times *t)
{
	char from[TEXT_NUMBER], to[TEXT_NUMBER], count[TEXT_NUMBER], change[256];
	const char *family = l->family_name ? l->family_name : "unknown family";

	text__seconds(from, sizeof(from), l->first, t->start, 3);
	text__seconds(to, sizeof(to), l->last, t->start, 3);
	text__count(count, sizeof(count), l->count);
	loss__consequence(change, sizeof(change), l, t);
	if (l->reason == LOSS_ATTACH_GAP)
		snprintf(buf, size, "%s: what began in %s between %s and %s s, before it was probed; %s", family,
			 l->path && *l->path ? l->path : "a library", from, to, change);
	else if (l->reason == LOSS_UNPROBED)
		snprintf(buf, size, "%s: calls of functions in %s that have no probes; %s", family,
			 l->path && *l->path ? l->path : "a library", change);
	else
		snprintf(buf, size, "%s: %s %s between %s and %s s: %s; %s", family, count, noun_of(l), from, to,
			 loss__reason(l->reason), change);
	return buf;
}

/* Returns whether l is inside the traced time and of the same family and reason as other. */
static bool is_like(const struct loss *l, const struct loss_times *t, const struct loss *other)
{
	return l->reason == other->reason && l->family == other->family && is_inside(l, t);
}

/* Counts the losses like `one`; *span is the time that they span together. */
static u32 count_like(const struct loss *list, u32 n, const struct loss_times *t, const struct loss *one,
		      struct loss *span)
{
	u32 gaps = 0;

	for (u32 i = 0; i < n; i++) {
		if (!is_like(&list[i], t, one))
			continue;
		span->first = !gaps || list[i].first < span->first ? list[i].first : span->first;
		span->last = !gaps || list[i].last > span->last ? list[i].last : span->last;
		gaps++;
	}
	return gaps;
}

char *losses__line(char *buf, size_t size, const struct loss *list, u32 n, u32 i, const struct loss_times *t)
{
	const struct loss *l = &list[i];
	struct loss span = *l, before;
	u32 shown, more;

	buf[0] = '\0';
	if (!is_inside(l, t))
		return buf;
	if (!loss__is_of_library(l->reason))
		return loss_text(buf, size, l, t);
	shown = count_like(list, i, t, l, &before);
	more = count_like(list + i, n - i, t, l, &span);
	if (shown < GAPS_SHOWN || (shown == GAPS_SHOWN && more == 1))
		return loss_text(buf, size, l, t);
	if (shown == GAPS_SHOWN && l->reason == LOSS_UNPROBED)
		snprintf(
			buf, size,
			"%s: calls of functions in %u more files that have no probes; `sonde report FILE losses` lists them",
			l->family_name ? l->family_name : "unknown family", more);
	else if (shown == GAPS_SHOWN)
		snprintf(
			buf, size,
			"%s: what began in %u more files between %s and %s s, before they were probed; `sonde report FILE losses` lists them",
			l->family_name ? l->family_name : "unknown family", more, TEXT_SECONDS(span.first, t->start, 3),
			TEXT_SECONDS(span.last, t->start, 3));
	return buf;
}

/* Returns the percentage of a family's events that is missing for all reasons together. */
static double missing_percent(const struct loss *list, u32 n, u16 family)
{
	double lost = 0, there = 0;

	for (u32 i = 0; i < n; i++) {
		if (list[i].family != family || list[i].outside || loss__effect(&list[i]) != EFFECT_MISSING)
			continue;
		lost += (double)list[i].count;
		there = (double)list[i].recorded;
	}
	return lost > 0 ? 100 * lost / (lost + there) : 0;
}

char *losses__outside_text(char *buf, size_t size, const struct loss *list, u32 n)
{
	u64 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += list[i].outside ? list[i].count : 0;
	if (!sum)
		buf[0] = '\0';
	else
		snprintf(
			buf, size,
			"%s record%s lost while probes were attached or detached, outside of the traced time: no figure lacks %s",
			TEXT_COUNT(sum), sum == 1 ? " was" : "s were", sum == 1 ? "it" : "them");
	return buf;
}

char *losses__verdict(char *buf, size_t size, const struct loss *list, u32 n, const struct loss_times *t)
{
	char low[256] = "", share[32];
	double worst = 0;
	size_t used = 0;
	u64 seen = 0;
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		u16 family = list[i].family;
		double percent;

		any = any || is_inside(&list[i], t);
		if (family >= 64 || seen & 1ull << family)
			continue;
		seen |= 1ull << family;
		percent = missing_percent(list, n, family);
		worst = percent > worst ? percent : worst;
		if (percent >= LOW_PERCENT && used < sizeof(low))
			used += (size_t)snprintf(low + used, sizeof(low) - used, "%s%s by up to %s", used ? ", " : "",
						 family == FAMILY_CORE ? "all families" :
						 list[i].family_name   ? list[i].family_name :
									 "an unknown family",
						 percent_text(share, sizeof(share), "", percent));
	}
	if (!any)
		buf[0] = '\0';
	else if (used)
		snprintf(buf, size, "Counts and sums are too low: those of %s.", low);
	else if (worst > 0)
		snprintf(buf, size, "All other counts and sums are right: %s%s of a family's events are missing.",
			 worst < 0.1 ? "" : "at most ", percent_text(share, sizeof(share), "", worst));
	else
		snprintf(buf, size, "All other counts and sums are right.");
	return buf;
}
