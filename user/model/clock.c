// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000ull
#define DAY    86400ull

/* Parses digits; returns NULL if there is none or the number is above max. */
static const char *parse_number(const char *p, u64 max, u64 *out)
{
	const char *from = p;

	for (*out = 0; *p >= '0' && *p <= '9'; p++) {
		*out = *out * 10 + (u64)(*p - '0');
		if (*out > max)
			return NULL;
	}
	return p > from ? p : NULL;
}

/* Parses ".5" as ns; 0 without a point. Digits beyond the ninth are dropped. */
static const char *parse_fraction(const char *p, u64 *ns)
{
	u64 unit = SECOND / 10;

	*ns = 0;
	/* ".." ends a number */
	if (p[0] != '.' || p[1] == '.')
		return p;
	for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
		*ns += unit * (u64)(*p - '0');
	return p;
}

static u64 local_second_of_day(u64 realtime)
{
	time_t t = (time_t)(realtime / SECOND);
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	return (u64)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec);
}

/* Parses HH:MM:SS[.fff]; *ns is the time from `after` to the next such time of day. */
static const char *parse_wall(const char *p, u64 after, const struct trace_head *head, u64 *ns)
{
	u64 h, m, s, fraction, now, then, realtime = head->realtime + (after - head->monotonic);

	p = parse_number(p, 23, &h);
	p = p && *p == ':' ? parse_number(p + 1, 59, &m) : NULL;
	p = p && *p == ':' ? parse_number(p + 1, 59, &s) : NULL;
	p = p ? parse_fraction(p, &fraction) : NULL;
	if (!p || !head->realtime)
		return NULL;
	then = (h * 3600 + m * 60 + s) * SECOND + fraction;
	now = local_second_of_day(realtime) * SECOND + realtime % SECOND;
	/*
	 * A time shortly before the reference is on the same day, because a time copied from a log lies in the
	 * trace; a time more than half a day before it is on the next day.
	 */
	if (then < now)
		*ns = now - then < DAY / 2 * SECOND ? 0 : then + DAY * SECOND - now;
	else
		*ns = then - now;
	return p;
}

/* Parses one side of a range. A time of day is the next one after `after`. */
static const char *parse_moment(const char *p, u64 start, u64 after, const struct trace_head *head, u64 *time)
{
	const char *end, *colon = strchr(p, ':'), *dots = strstr(p, "..");
	u64 s = 0, ns = 0;

	if (colon && (!dots || colon < dots)) {
		start = after;
		end = parse_wall(p, after, head, &ns);
	} else {
		end = *p == '.' ? p : parse_number(p, 1ull << 33, &s);
		if (end)
			end = parse_fraction(end, &ns);
	}
	*time = start + s * SECOND + ns;
	return end != p ? end : NULL;
}

int clock__parse_range(const char *text, u64 start, const struct trace_head *head, u64 *from, u64 *to, char *err,
		       size_t err_len)
{
	const char *p = text;

	*from = *to = 0;
	if (strncmp(p, "..", 2)) {
		p = parse_moment(p, start, start, head, from);
		if (!p)
			goto bad;
	}
	if (strncmp(p, "..", 2))
		goto bad;
	p += 2;
	if (*p) {
		p = parse_moment(p, start, *from ? *from : start, head, to);
		if (!p || *p)
			goto bad;
		if (*to <= *from || *to <= start) {
			snprintf(err, err_len, "the time range '%s' is empty: it ends before it begins", text);
			return -EINVAL;
		}
	} else if (!*from) {
		goto bad;
	}
	return 0;
bad:
	snprintf(err, err_len,
		 "'%s' is no time range: write A..B, each side seconds since the trace's start (12.5..14, ..3, 3..)\n"
		 "or a time of day (12:00:05..12:00:06.5)",
		 text);
	return -EINVAL;
}
