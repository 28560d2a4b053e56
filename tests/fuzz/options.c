// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any text as a command line with one argument per line: parses the options of `sonde record`, `report` and
 * `export`, and the patterns, lists and times in them.
 */
#include <getopt.h>
#include <string.h>
#include <unistd.h>

/* Includes the sources, as their parsers are static. */
#define help  record_help
#define parse record_parse
#include "cmd/record.c"
#undef help
#undef parse
#define help	     report_help
#define parse	     report_parse
#define request	     report_request
#define long_options report_options
#define usage	     report_usage
#define options_help report_options_help
#include "cmd/report.c"
#undef help
#undef parse
#undef request
#undef long_options
#undef usage
#undef options_help
#define help	     export_help
#define parse	     export_parse
#define request	     export_request
#define long_options export_options
#define usage	     export_usage
#define options_help export_options_help
#include "cmd/export.c"

#include "fuzz.h"
#include "kernel/probes.h"
#include "model/clock.h"
#include "util/glob.h"

#define WORDS_MAX 64

/* An argument vector for getopt: the program's name first, NULL last. */
static int split(char *text, char **words)
{
	char *save, *word = strtok_r(text, "\n", &save);
	int n = 1;

	words[0] = "sonde";
	for (; word && n < WORDS_MAX; word = strtok_r(NULL, "\n", &save))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

static void parse_all(const char *text, size_t size)
{
	static struct record_args record;
	struct report_request report = {};
	struct export_request export = {};
	char *words[WORDS_MAX + 1];

	for (int command = 0; command < 3; command++) {
		char *copy = strndup(text, size);
		int n = split(copy, words);

		/* resets getopt */
		optind = 0;
		memset(&record, 0, sizeof(record));
		switch (command) {
		case 0:
			record_parse(&record, n, words);
			record_options__free(&record);
			break;
		case 1:
			report_parse(&report, n, words);
			break;
		case 2:
			export_parse(&export, n, words);
			break;
		}
		free(copy);
	}
}

static void parse_parts(const char *text)
{
	static const struct trace_head head = { .realtime = 1700000000000000000ULL, .monotonic = 5 };
	struct glob glob;
	struct section section;
	char why[512], name[512];
	const char *list = text;
	u64 from, to;

	clock__parse_range(text, 5, &head, &from, &to, why, sizeof(why));
	while (section__next_function(&list, name, sizeof(name)))
		fuzz__use(strlen(name));
	if (!glob__compile(&glob, text, GLOB_STEPS))
		fuzz__use(sizeof(glob));
	if (!section__parse(&section, text))
		fuzz__use(section.kind);
}

/* What the parsers print is not read: a million messages would fill the fuzzer's log. */
static void discard_output(void)
{
	static FILE *null;

	if (null)
		return;
	null = fopen("/dev/null", "w");
	if (!null)
		abort();
	stdout = stderr = null;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	discard_output();
	if (text) {
		parse_all(text, strlen(text));
		parse_parts(text);
	}
	free(text);
	return 0;
}
