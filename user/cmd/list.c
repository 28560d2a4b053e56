// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde list` lists what this build can trace, report and export. It needs no privilege. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/catalog.h"
#include "cmd/cmd.h"
#include "cmd/pager.h"
#include "cmd/resolve.h"
#include "cmd/table_options.h"
#include "export/export.h"
#include "kernel/embedded.h"
#include "report/report.h"
#include "util/array.h"

static const char usage[] =
	"Usage: sonde list [families|probes|events|fields|options|reports|formats].. [--format table|csv|json]\n"
	"                  [--resolve FILE|PID [--placed GLOB]] [--sort COLUMN] [-n ROWS] [--no-pager]\n"
	"\n"
	"Lists what this build supports; without an argument: families, reports and formats.\n"
	"\n"
	"  families  what can be traced, for `record -t`\n"
	"  probes    where each program attaches\n"
	"  events    kinds of records\n"
	"  fields    the fields of each event: type, unit, meaning\n"
	"  options   options of families, for `record --FAMILY=OPTION`\n"
	"  reports   for `report`\n"
	"  formats   for `export --to`\n"
	"\n"
	"  --sort COLUMN, -n ROWS, --no-pager  as for `sonde report`\n"
	"\n"
	"With `probes`:\n"
	"  --resolve FILE|PID   where each probe would be in this file, or in the files that this process maps,\n"
	"                       its cost there, and why it can't be cheaper; nothing is attached\n"
	"  --placed GLOB        also functions that match and are not probed: where their entries and exits are\n"
	"  --scope user|all, --trusted-files, --remote-files   as for `sonde record`, with a PID\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sonde list probes\n"
	"  sonde list events fields --format json\n"
	"  sonde list probes --resolve /usr/local/cuda/lib64/libcudart.so.13\n"
	"  sonde list probes --resolve libtorch_cpu.so --placed '_ZN2at4_ops*4callE*'\n";

static const struct column doc_columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "doc", "What it is", VALUE_TEXT, SHOW_PLAIN },
};

static void add_report(const struct report *r, void *table)
{
	table__add(table, V_TEXT(r->name), V_TEXT(r->doc));
}

static void list_reports(const struct embedded *bpf, struct report_output *out)
{
	report__each(add_report, REPORT_TABLE(out, "reports", "Reports", doc_columns));
}

static void add_exporter(const struct exporter *x, void *table)
{
	table__add(table, V_TEXT(x->name), V_TEXT(x->doc));
}

static void list_formats(const struct embedded *bpf, struct report_output *out)
{
	exporter__each(add_exporter, REPORT_TABLE(out, "formats", "Formats", doc_columns));
}

static const struct {
	const char *name;
	void (*add)(const struct embedded *bpf, struct report_output *out);
	bool by_default;
} lists[] = {
	{ "families", catalog__families, true }, { "probes", catalog__probes, false },
	{ "events", catalog__events, false },	 { "fields", catalog__fields, false },
	{ "options", catalog__options, false },	 { "reports", list_reports, true },
	{ "formats", list_formats, true },
};
#define N_LISTS	    ARRAY_LEN(lists)
#define LIST_PROBES 1 /* its index there */

enum { OPT_RESOLVE = 256, OPT_PLACED };

static const struct option long_options[] = {
	{ "resolve", required_argument, NULL, OPT_RESOLVE },
	{ "placed", required_argument, NULL, OPT_PLACED },
	SCOPE_OPTIONS,
	TABLE_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* Returns an exit status, or -1 to continue. */
static int parse(struct output_options *options, struct resolve_options *resolve, u32 *selected, int argc, char **argv)
{
	u32 i;
	int c, taken;

	while ((c = getopt_long(argc, argv, "n:h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_RESOLVE:
			resolve->target = optarg;
			break;
		case OPT_PLACED:
			resolve->placed = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_DONE;
		default:
			taken = scope__option(&resolve->scope, "list", c, optarg);
			if (taken < 0 || (!taken && !table_options__take(options, "list", c, optarg)))
				return EXIT_USAGE;
		}
	}
	for (; optind < argc; optind++) {
		for (i = 0; i < N_LISTS && strcmp(lists[i].name, argv[optind]); i++)
			;
		if (i == N_LISTS)
			return cmd__usage("list", "there is no list '%s'", argv[optind]);
		*selected |= 1u << i;
	}
	if (resolve->placed && !resolve->target)
		return cmd__usage("list", "--placed needs --resolve FILE or PID with it");
	if (resolve->target && *selected != 1u << LIST_PROBES)
		return cmd__usage("list", "--resolve works only with `probes`");
	if (resolve->target && !scope__apply_to_processes(&resolve->scope, "list"))
		return EXIT_USAGE;
	return -1;
}

static int cmd_list(int argc, char **argv)
{
	struct output_options options = { .rows = -1 };
	struct report_output out = { .name = "list" };
	struct resolve_options resolve = { 0 };
	struct embedded bpf = { 0 };
	char why[512] = "";
	u32 i, selected = 0;
	int err, status = parse(&options, &resolve, &selected, argc, argv);

	if (status >= 0)
		return status;
	pager__start(&options);
	err = embedded__open(&bpf, why, sizeof(why));
	if (!err && resolve.target)
		err = resolve__add(&bpf, &out, &resolve, why, sizeof(why));
	if (err) {
		report_output__free(&out);
		cmd__error("%s", *why ? why : strerror(-err));
		embedded__close(&bpf);
		return EXIT_FAILED;
	}
	for (i = 0; i < N_LISTS && !resolve.target; i++) {
		if (selected ? selected >> i & 1 : lists[i].by_default)
			lists[i].add(&bpf, &out);
	}
	status = table_options__print(&options, &out, "list");
	report_output__free(&out);
	embedded__close(&bpf);
	return status;
}

COMMAND(list) = {
	.name = "list",
	.doc = "list families, probes, events, reports and formats",
	.order = 50,
	.run = cmd_list,
};
