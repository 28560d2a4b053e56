// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every report names existing events or families, on which the summary's "More:" and the messages of empty reports
 * depend.
 */
#include <string.h>

#include "kernel/embedded.h"
#include "report/report.h"
#include "test.h"

static const struct schema *schema;
static u32 unknown, reports;

static bool is_known(const char *word, size_t len)
{
	for (u32 i = 0; i < schema->n_events; i++)
		if (strlen(schema->events[i].name) == len && !memcmp(schema->events[i].name, word, len))
			return true;
	for (u32 i = 0; i < schema->n_families; i++)
		if (strlen(schema->families[i].name) == len && !memcmp(schema->families[i].name, word, len))
			return true;
	return false;
}

static void check_report(const struct report *r, void *arg)
{
	size_t len;

	reports++;
	for (const char *word = r->kinds; word && *word; word += len + (word[len] == ',')) {
		len = strcspn(word, ",");
		if (is_known(word, len))
			continue;
		printf("# report %s: there is no event or family %.*s\n", r->name, (int)len, word);
		unknown++;
	}
}

TEST(reports_name_existing_events)
{
	struct embedded e = {};
	char err[256];

	REQUIRE(!embedded__open(&e, err, sizeof(err)));
	schema = e.schema;
	report__each(check_report, NULL);
	CHECK(reports > 20);
	CHECK(!unknown);
	embedded__close(&e);
}

TEST_MAIN()
