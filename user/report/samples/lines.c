// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report lines: Python lines by self CPU time (including C code called) and total CPU time, with their source. */
#include <unistd.h>

#include "model/source_lines.h"
#include "output/text.h"
#include "report/samples/sampled.h"
#include "report/source.h"
#include "util/account.h"

struct lines_report {
	struct sampled s;
	struct map lines; /* of struct sampled_code */
	struct sampled_weight without_python;
	struct source_lines recorded; /* in the trace */
	struct sources sources; /* files of this machine */
};

static const struct column columns[] = {
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "line", "Line", VALUE_U64, SHOW_PLAIN },
	{ "function", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "self_percent", "Self %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "self_ns", "Self", VALUE_U64, SHOW_NS },
	{ "total_percent", "Total %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "samples", "Samples", VALUE_U64, SHOW_COUNT },
	{ "total_samples", "Samples, total", VALUE_U64, SHOW_NEVER },
	{ "gil_ns", "With GIL", VALUE_U64, SHOW_NEVER },
	{ "no_gil_ns", "Without GIL", VALUE_U64, SHOW_NEVER },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS },
	{ "off_cpu_total_ns", "Off CPU, total", VALUE_U64, SHOW_NEVER },
	{ "source", "Source", VALUE_TEXT, SHOW_PLAIN },
};

static const char *text_of(struct lines_report *r, const struct stack_frame *f, u64 made, char *buf, size_t size)
{
	const char *text = source_lines__text(&r->recorded, f->file, f->line);

	return text ? text : sources__line(&r->sources, f->file, f->line, made, buf, size);
}

static void fill(struct lines_report *r, const struct query *args, struct table *t)
{
	const struct sampled_weight *all = &r->s.total;
	u64 made = trace__head(args->trace)->realtime;
	char text[320];

	MAP_EACH(const struct sampled_code *l, &r->lines) {
		const struct stack_frame *f = stacks__frame(r->s.stacks, l->frame);

		table__add(t, V_TEXT(*f->file ? f->file : "?"), f->line ? V_U64(f->line) : V_NONE,
			   V_TEXT(*f->name ? f->name : "?"), V_DBL(table__percent(l->self.cpu_ns, all->cpu_ns)),
			   V_U64(l->self.cpu_ns), V_DBL(table__percent(l->total.cpu_ns, all->cpu_ns)),
			   V_U64(l->total.cpu_ns), V_U64(l->self.samples), V_U64(l->total.samples),
			   V_U64(l->self.gil_ns), V_U64(l->self.no_gil_ns), V_U64(l->self.off_ns),
			   V_U64(l->total.off_ns), V_TEXT(text_of(r, f, made, text, sizeof(text))));
	}
	table__sort(t, all->cpu_ns ? "self_ns" : "off_cpu_ns");
}

/* `sonde why` and `record --report` have dropped root's rights when they print. */
static const char *reader_name(char *buf, size_t size)
{
	if (geteuid() == UID_WORKER)
		return "sonde's own account";
	snprintf(buf, size, "user %u", geteuid());
	return buf;
}

static void add_findings(struct lines_report *r, struct report_output *out)
{
	const struct sampled_weight *all = &r->s.total;
	const struct sampled_code *busy = NULL;
	char name[256];

	MAP_EACH(const struct sampled_code *l, &r->lines)
		if (!busy || l->self.cpu_ns > busy->self.cpu_ns)
			busy = l;
	if (busy && busy->self.cpu_ns)
		report_output__finding(out, "%.0f%% of %s of CPU time was spent at %s.",
				       table__percent(busy->self.cpu_ns, all->cpu_ns), TEXT_NS(all->cpu_ns),
				       stacks__label(r->s.stacks, busy->frame, name, sizeof(name)));
	if (r->sources.unread)
		report_output__note(
			out,
			"%u source file%s can't be read here by %s: lines of %s are without text. A user who "
			"may read %s sees them, too (of a trace given to that user).",
			r->sources.unread, text__s(r->sources.unread), reader_name((char[32]){ 0 }, 32),
			r->sources.unread == 1 ? "it" : "them", r->sources.unread == 1 ? "it" : "them");
	if (r->sources.newer)
		report_output__note(out,
				    "%u source file%s changed since the trace was made: the text may not be what ran.",
				    r->sources.newer, r->sources.newer == 1 ? " was" : "s were");
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "lines", "Lines of Python by their own CPU time", columns);
	struct lines_report r = {};
	int err = sampled__read(&r.s, args);

	t->limit = 30;
	sources__init(&r.sources);
	if (!err)
		err = source_lines__load(&r.recorded, args->trace);
	if (!err)
		err = sampled__by_code(&r.s, true, &r.lines, &r.without_python);
	if (!err && sampled__add_notes(&r.s, args, out)) {
		fill(&r, args, t);
		add_findings(&r, out);
	}
	sources__free(&r.sources);
	source_lines__free(&r.recorded);
	map__free(&r.lines);
	sampled__free(&r.s);
	return err;
}

REPORT(lines) = {
	.name = "lines",
	.doc = "lines of Python with their source text: self and total CPU time, and time off the CPU",
	.kinds = "sample_cpu,sample_off",
	.run = run,
	.reads_sources = true,
};
