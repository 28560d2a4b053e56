// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/meaning.h"

#include <string.h>

#include "util/path.h"

REGISTRY(family_meaning, sonde_meanings);

static bool fits(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	return pattern[len - 1] == '*' ? !strncmp(pattern, name, len - 1) : !strcmp(pattern, name);
}

const struct event_meaning *meaning__of(const struct schema_event *e)
{
	static const struct event_meaning call = { "*", .cause = ACTIVITY_LIBRARY, .rank = RANK_CALL };

	REGISTRY_EACH(sonde_meanings, family) {
		/* the names of a family's events begin with its own; exports ask for each event */
		if (!path__begins_with(e->name, (*family)->name))
			continue;
		for (const struct event_meaning *m = (*family)->events; m->event; m++)
			if (fits(m->event, e->name))
				return m;
	}
	return &call;
}

const struct event_meaning *meaning__of_report(const char *report)
{
	REGISTRY_EACH(sonde_meanings, family)
		for (const struct event_meaning *m = (*family)->events; m->event; m++)
			if (m->report && !strcmp(m->report, report))
				return m;
	return NULL;
}
