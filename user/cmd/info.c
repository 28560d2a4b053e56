// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde info` describes a trace file. It does not interpret its events: `sonde report` does. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/info.h"
#include "cmd/pager.h"
#include "cmd/table_options.h"
#include "core/meta.h"
#include "output/text.h"
#include "report/origin.h"

static const char usage[] =
	"Usage: sonde info FILE [--verify] [--format table|csv|json] [--no-pager]\n"
	"\n"
	"Prints where and when a trace was made, its kinds of events and how many of each, what was lost,\n"
	"what tracing cost, and from which moment each library was probed.\n"
	"\n"
	"  --verify    check every checksum\n"
	"  --format    table for people (default), csv or json\n"
	"  --no-pager  no pager: on a terminal long output goes through $SONDE_PAGER, $PAGER or less\n"
	"\n"
	"Exit status: 0 done; 1 failed, or --verify found damage; 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sonde info run.sonde\n"
	"  sonde info --verify run.sonde && cp run.sonde /archive/\n"
	"  sonde info run.sonde --format json | jq '.tables.events[] | {name, events}'\n";

static const struct column fact_columns[] = {
	{ "key", "", VALUE_TEXT, SHOW_NEVER },
	{ "what", "What", VALUE_TEXT, SHOW_PLAIN },
	{ "value", "Value", VALUE_TEXT, SHOW_PLAIN },
};

static void fact(struct table *t, const char *key, const char *what, const char *value)
{
	if (value && *value)
		table__add(t, V_TEXT(key), V_TEXT(what), V_TEXT(value));
}

static void fact_u64(struct table *t, const char *key, const char *what, const char *format, u64 value)
{
	char buf[64];

	snprintf(buf, sizeof(buf), format, value);
	fact(t, key, what, buf);
}

static void add_times(const struct trace_facts *f, struct table *t)
{
	char buf[128];
	u64 first = f->summary->first, last = f->summary->last;

	if (f->head->realtime) {
		fact(t, "start_date", "begun", text__date(buf, sizeof(buf), trace_facts__realtime(f, f->start)));
		if (f->summary->events)
			fact(t, "end_date", "last event", text__date(buf, sizeof(buf), trace_facts__realtime(f, last)));
	}
	if (f->summary->events) {
		snprintf(buf, sizeof(buf), "%s to %s s", TEXT_SECONDS(first, f->start, 6),
			 TEXT_SECONDS(last, f->start, 6));
		fact(t, "time_range", "events from", buf);
	}
	snprintf(buf, sizeof(buf), "%s, from %s to %s s", TEXT_NS(trace_facts__traced(f)),
		 TEXT_SECONDS(f->live, f->start, 6), TEXT_SECONDS(f->stop, f->start, 6));
	fact(t, "traced", "traced for", buf);
	if (f->n_ranges)
		fact_u64(t, "ranges", "capture ranges", "%llu", f->n_ranges);
	fact(t, "ended", "ended because",
	     f->summary->being_recorded ? "it has not: it is being recorded" :
					  end__reason(f->summary->has_index ? f->end_reason : 0));
}

static void add_facts(const struct trace_facts *f, const struct schema *schema, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "trace", "Trace", fact_columns);
	const struct trace_summary *s = f->summary;
	char buf[128];
	u32 i, n = 0;

	fact(t, "file", "file", f->file);
	fact(t, "hostname", "host", f->head->hostname);
	fact(t, "machine_id", "machine id", f->head->machine_id);
	fact(t, "boot_id", "boot id", f->head->boot_id);
	fact(t, "kernel", "kernel", f->head->kernel);
	fact(t, "arch", "architecture", f->head->arch);
	fact_u64(t, "cpus", "possible CPUs", "%llu", f->head->cpus);
	fact(t, "sonde_version", "sonde", f->head->sonde_version);
	fact(t, "command", "command", f->head->command);
	fact(t, "families", "families requested", f->head->families);
	add_times(f, t);
	snprintf(buf, sizeof(buf), "%s in %llu chunks", TEXT_COUNT(s->events), s->chunks);
	fact(t, "events", "events", buf);
	snprintf(buf, sizeof(buf), "%s (%s uncompressed)", TEXT_BYTES(s->file_bytes), TEXT_BYTES(s->raw_bytes));
	fact(t, "bytes", "size", buf);
	for (i = 0; i < schema->n_events; i++)
		n += schema->events[i].n;
	snprintf(buf, sizeof(buf), "%u families, %u kinds of events, %u fields", schema->n_families, schema->n_events,
		 n);
	fact(t, "schema", "schema", buf);
	if (!s->has_index)
		fact(t, "index", "index",
		     s->being_recorded ? "none yet, the file was scanned" :
					 "none: the recording was cut off, the file was scanned");
	if (s->torn_bytes)
		fact(t, "torn_bytes", "incomplete at the end", TEXT_BYTES(s->torn_bytes));
}

static void add_events(struct trace *trace, struct report_output *out)
{
	static const struct column columns[] = {
		{ "name", "Event", VALUE_TEXT, SHOW_PLAIN },
		{ "id", "Id", VALUE_U64, SHOW_HEX },
		{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
		{ "events", "Events", VALUE_U64, SHOW_COUNT },
		{ "file_bytes", "In the file", VALUE_U64, SHOW_BYTES },
		{ "raw_bytes", "Raw", VALUE_U64, SHOW_BYTES },
		{ "bytes_per_event", "Bytes each", VALUE_DOUBLE, SHOW_PLAIN },
		{ "doc", "What it is", VALUE_TEXT, SHOW_PLAIN },
	};
	struct table *t = REPORT_TABLE(out, "events", "Events", columns);
	const struct schema_family *f;
	const struct kind_summary *k;
	u32 i, n;

	k = trace__kinds(trace, &n);
	for (i = 0; i < n; i++) {
		f = schema__family_by_id(trace__schema(trace), (u8)EVENT_FAMILY(k[i].event->id));
		table__add(t, V_TEXT(k[i].event->name), V_U64(k[i].event->id), V_TEXT(f ? f->name : NULL),
			   V_U64(k[i].events), V_U64(k[i].compressed), V_U64(k[i].raw),
			   k[i].events ? V_DBL((double)k[i].compressed / (double)k[i].events) : V_NONE,
			   V_TEXT(k[i].event->doc));
	}
}

static int verify(struct trace *t, const char *file, struct report_output *out)
{
	char why[512] = "";
	u64 faults = 0;
	int err = trace__verify(t, &faults, why, sizeof(why));

	if (!err) {
		report_output__finding(out, "All checksums are correct.");
		return EXIT_DONE;
	}
	if (err == -EBADMSG)
		cmd__error("%s: damaged in %llu part%s; the first: %s\nreports leave out the damaged chunks", file,
			   faults, text__s(faults), why);
	else
		cmd__error("%s: cannot verify: %s", file, err == -ENOMEM || !*why ? cmd__reason(err) : why);
	return EXIT_FAILED;
}

enum { OPT_VERIFY = 256 };

static const struct option long_options[] = {
	FORMAT_OPTION, { "verify", no_argument, NULL, OPT_VERIFY }, PAGER_OPTION, { "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct request {
	char *file;
	bool verify;
	struct output_options output;
};

/* Returns an exit status, or -1 to continue. */
static int parse(struct request *r, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_VERIFY:
			r->verify = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_DONE;
		default:
			if (!table_options__take(&r->output, "info", c, optarg))
				return EXIT_USAGE;
		}
	}
	if (argc != optind + 1)
		return cmd__usage("info",
				  argc == optind ? "no trace is named: `sonde info FILE`" : "one trace at a time");
	r->file = argv[optind];
	return -1;
}

static int fill(struct trace *t, const struct trace_facts *facts, struct report_output *out)
{
	struct names *names;
	int err = names__create(&names, trace__schema(t));

	if (err)
		return err;
	err = names__load(names, t);
	add_facts(facts, trace__schema(t), out);
	add_events(t, out);
	if (!err)
		err = info__objects(t, facts, names, out);
	if (!err)
		err = info__cost(t, out);
	names__free(names);
	return err;
}

static int cmd_info(int argc, char **argv)
{
	struct request r = { .output = { .rows = -1 } };
	struct report_output out = { .name = "info" };
	struct trace_facts facts = { 0 };
	int printed, err, status = parse(&r, argc, argv);
	struct inputs in;
	struct trace *t;

	if (status >= 0)
		return status;
	if (!inputs__open(&in, &r.file, 1))
		return EXIT_FAILED;
	pager__start(&r.output);
	t = inputs__read(&in, NULL);
	if (!t)
		return EXIT_FAILED;
	status = r.verify ? verify(t, r.file, &out) : EXIT_DONE;
	err = trace_facts__load(&facts, t, r.file, 0, 0);
	if (!err)
		err = fill(t, &facts, &out);
	facts.damaged = trace__damaged(t);
	out.origin = trace_origin(&facts);
	if (err)
		cmd__error("%s: cannot read it: %s", r.file, cmd__reason(err));
	printed = err ? EXIT_FAILED : cmd__print(&out, &r.output);
	report_output__free(&out);
	trace_facts__free(&facts);
	trace__close(t);
	return status ? status : printed;
}

COMMAND(info) = {
	.name = "info",
	.doc = "describe a trace file: origin, events, losses, cost; --verify checks it",
	.order = 40,
	.run = cmd_info,
};
