// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/glob.h"

#include <errno.h>
#include <string.h>

/* The characters that one step accepts. */
struct step {
	bool takes[256];
};

/* Parses the set after '[', with an optional '!' or '^'; NULL: no ']' ends it, so '[' is an ordinary character. */
static const char *parse_class(struct step *step, const char *p)
{
	bool negated = *p == '!' || *p == '^', first = true;
	unsigned char from, to;

	if (negated)
		p++;
	for (; *p && (first || *p != ']'); first = false) {
		if (*p == '\\' && p[1])
			p++;
		from = to = *p++;
		if (*p == '-' && p[1] && p[1] != ']') {
			p++;
			if (*p == '\\' && p[1])
				p++;
			to = *p++;
		}
		for (int c = from; c <= to; c++)
			step->takes[c] = true;
	}
	if (*p != ']')
		return NULL;
	for (int c = 1; negated && c < 256; c++)
		step->takes[c] = !step->takes[c];
	return p + 1;
}

static const char *parse_step(struct step *step, const char *p)
{
	const char *after;

	memset(step, 0, sizeof(*step));
	if (*p == '?') {
		memset(step->takes + 1, true, 255);
		return p + 1;
	}
	if (*p == '[') {
		after = parse_class(step, p + 1);
		if (after)
			return after;
		memset(step, 0, sizeof(*step));
	}
	if (*p == '\\' && p[1])
		p++;
	step->takes[(unsigned char)*p] = true;
	return p + 1;
}

int glob__compile(struct glob *g, const char *p, u32 max)
{
	struct step step;
	u32 n = 0;

	memset(g, 0, sizeof(*g));
	while (*p) {
		if (*p == '*') {
			g->loops |= 1ull << n;
			p++;
			continue;
		}
		if (n == max)
			return -E2BIG;
		p = parse_step(&step, p);
		for (int c = 1; c < 256; c++)
			g->accept[c] |= step.takes[c] ? 1ull << n : 0;
		n++;
	}
	g->end = 1ull << n;
	return 0;
}
