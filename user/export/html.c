// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A report as one HTML file without external resources: findings, the time line, flame graphs, and the tables of all
 * reports. The page is html.html; its marks, such as @FINDINGS@, are replaced here. All texts may come from targets
 * and go through output/html.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/flame.h"
#include "export/html_timeline.h"
#include "output/html.h"
#include "output/text.h"
#include "report/origin.h"
#include "report/report.h"
#include "util/array.h"

#include "html.html.inc"

/* However long the trace is, the page has at most so many rows of a table, and nodes of a flame graph. */
#define ROWS_MAX  100
#define NODES_MAX 8000

struct html {
	struct export *e;
	struct query q; /* all of the traced time */
	struct findings *findings; /* of q */
	struct trace_facts facts;
	struct profiles profiles;
	struct report_output summary;
	struct html_timeline timeline;
	int err; /* of a report, in put_report */
};

static int put_title(struct html *h)
{
	html__put_text(h->e->out, h->facts.file);
	return 0;
}

static int put_about(struct html *h)
{
	const struct trace_head *head = h->facts.head;
	char text[TEXT_NUMBER];
	FILE *out = h->e->out;

	html__put_text(out, head->hostname ? head->hostname : "?");
	if (head->realtime)
		fprintf(out, ", %s", text__date(text, sizeof(text), trace_facts__realtime(&h->facts, h->facts.start)));
	fprintf(out, ", traced for %s by sonde ", text__ns(text, sizeof(text), trace_facts__traced(&h->facts)));
	html__put_text(out, head->sonde_version ? head->sonde_version : "?");
	fputs(": <code>", out);
	html__put_text(out, head->command ? head->command : "?");
	fputs("</code>", out);
	return 0;
}

static int put_light(struct html *h)
{
	for (u32 i = 0; i < FINDING_COLOURS; i++)
		fprintf(h->e->out, " --%u: %s;", i, finding_colour__text(i)->light);
	return 0;
}

static int put_dark(struct html *h)
{
	for (u32 i = 0; i < FINDING_COLOURS; i++)
		fprintf(h->e->out, " --%u: %s;", i, finding_colour__text(i)->dark);
	return 0;
}

/* Losses and what was not recorded: the lines that a report prints at its end */
static int put_losses(struct html *h)
{
	static const struct output_options plain = { .rows = -1 };
	struct report_origin origin = trace_origin(&h->facts);
	char *text = NULL, *rest, *line;
	size_t len;
	FILE *lines = open_memstream(&text, &len);

	if (!lines)
		return -ENOMEM;
	origin.print(lines, &plain, "", origin.arg);
	if (fclose(lines)) {
		free(text);
		return -ENOMEM;
	}
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		fputs("<li>", h->e->out);
		html__put_text(h->e->out, line);
		fputs("</li>\n", h->e->out);
	}
	free(text);
	return 0;
}

/* Puts the source text of a line that the finding names; nothing if it is not known. */
static void put_quote(FILE *out, const struct report_finding *f, const char *object)
{
	char *quote = report_finding__quote(f, object);

	if (quote) {
		fputs("<br><code>", out);
		html__put_text(out, quote);
		fputs("</code>", out);
	}
	free(quote);
}

/* The headline, then a line for each clause, without the command, which gets an element of its own */
static void put_finding_text(FILE *out, const struct report_finding *f)
{
	for (u32 i = 0; i <= f->n_clauses; i++) {
		char *clause = f->n_clauses ? report_finding__clause(f, i) : strndup(f->text, f->sentence);

		fputs(i ? "<br>" : f->n_clauses ? "<b>" : "", out);
		html__put_text(out, clause ? clause : "?");
		fputs(!i && f->n_clauses ? "</b>" : "", out);
		free(clause);
		if (!i)
			put_quote(out, f, "code");
	}
	put_quote(out, f, "counterpart");
	put_quote(out, f, "activity_code");
}

static void put_attribute(FILE *out, const char *name, const struct value *text)
{
	if (!text)
		return;
	fprintf(out, " data-%s=\"", name);
	html__put_text(out, text->text);
	putc('"', out);
}

static void put_finding(FILE *out, const struct report_finding *f)
{
	const struct value *pid = report_finding__field(f, "pid"), *next = report_finding__field(f, "next");
	const struct value *confidence = report_finding__field(f, "confidence");

	fputs("<li", out);
	if (pid)
		fprintf(out, " data-pid=\"%llu\"", pid->u);
	put_attribute(out, "kind", report_finding__field(f, "kind"));
	put_attribute(out, "function", report_finding__field(f, "code.function"));
	put_attribute(out, "file", report_finding__field(f, "code.file"));

	fputs("><p>", out);
	put_finding_text(out, f);
	if (confidence && strcmp(confidence->text, "measured") != 0)
		fprintf(out, " <em>(%s)</em>", confidence->text);
	fputs("</p>", out);
	if (next) {
		fputs("<p class=\"evidence\"><code>", out);
		html__put_text(out, next->text);
		fputs("</code></p>", out);
	}
	fputs("</li>\n", out);
}

static int put_findings(struct html *h)
{
	for (u32 i = 0; i < h->summary.n_findings; i++)
		put_finding(h->e->out, &h->summary.findings[i]);
	return 0;
}

/* The processes that findings name come first. */
static void put_first(struct html *h)
{
	struct html_timeline *t = &h->timeline;

	for (u32 i = 0; i < h->summary.n_findings && t->n_first < TIMELINE_FIRST_MAX; i++) {
		const struct value *pid = report_finding__field(&h->summary.findings[i], "pid");

		if (pid)
			t->first[t->n_first++] = (u32)pid->u;
	}
}

static int put_timeline(struct html *h)
{
	int err = html_timeline__read(&h->timeline, &h->q);

	put_first(h);
	if (!err)
		err = html_timeline__write(&h->timeline, &h->q, h->e->out);
	html_timeline__free(&h->timeline);
	return err;
}

/* The page of format flame, within a frame */
static int put_flame(struct html *h)
{
	struct export inner = *h->e;
	char note[256];
	int err;

	if (!profiles__first(&h->profiles)) {
		profiles__note(&h->profiles, false, note, sizeof(note));
		fputs("<p>", h->e->out);
		html__put_text(h->e->out, note);
		fputs("</p>", h->e->out);
		return 0;
	}
	inner.out = html__attribute(h->e->out);
	if (!inner.out)
		return -ENOMEM;
	fputs("<iframe title=\"Flame graphs\" srcdoc='", h->e->out);
	err = profiles__limit(&h->profiles, NODES_MAX);
	if (!err)
		err = flame__put_page(&inner, &h->profiles);
	if (fclose(inner.out) && !err)
		err = -EIO;
	fputs("'></iframe>", h->e->out);
	return err;
}

static void put_tables(FILE *out, const struct report_output *r)
{
	char command[128];

	snprintf(command, sizeof(command), "sonde report FILE %s -n 0", r->name);
	for (const struct table *t = r->tables; t; t = t->next)
		html__put_table(out, t, ROWS_MAX, command);
	for (u32 i = 0; i < r->n_notes; i++) {
		fputs("<p class=\"note\">", out);
		html__put_text(out, r->notes[i]);
		fputs("</p>\n", out);
	}
}

static bool has_rows(const struct report_output *r)
{
	for (const struct table *t = r->tables; t; t = t->next)
		if (t->n_rows && !t->machine_only)
			return true;
	return false;
}

/* Does the trace have events that the report reads? */
static bool has_events(const struct html *h, const struct report *r)
{
	u32 n;
	const struct kind_summary *kinds = trace__kinds(h->e->trace, &n);

	for (u32 i = 0; i < n; i++)
		if (kinds[i].events && report__is_about(r, trace__schema(h->e->trace), kinds[i].event))
			return true;
	return !r->kinds;
}

static void open_details(FILE *out, const struct report *r, bool is_open)
{
	fprintf(out, "<details id=\"report-%s\"%s><summary><b>%s</b>: ", r->name, is_open ? " open" : "", r->name);
	html__put_text(out, r->doc);
	fputs("</summary>\n", out);
}

static void put_report(const struct report *r, void *arg)
{
	struct html *h = arg;
	struct report_output out = { .name = r->name, .for_people = true };
	FILE *file = h->e->out;

	if (h->err || !strcmp(r->name, "summary") || !has_events(h, r))
		return;
	h->err = report__run(r, &h->q, &out);
	if (!h->err && report_output__failed(&out))
		h->err = -ENOMEM;
	if (!h->err && has_rows(&out)) {
		open_details(file, r, false);
		fputs("<ul class=\"findings\">\n", file);
		for (u32 i = 0; i < out.n_findings; i++)
			put_finding(file, &out.findings[i]);
		fputs("</ul>\n", file);
		put_tables(file, &out);
		fputs("</details>\n", file);
	}
	report_output__free(&out);
}

static int put_reports(struct html *h)
{
	const struct report *summary = report__find("summary");

	open_details(h->e->out, summary, true);
	put_tables(h->e->out, &h->summary);
	fputs("</details>\n", h->e->out);
	report__each(put_report, h);
	return h->err;
}

static const struct {
	const char *mark;
	int (*put)(struct html *h);
} marks[] = {
	{ "@LIGHT@", put_light },	{ "@DARK@", put_dark },	    { "@TITLE@", put_title },
	{ "@ABOUT@", put_about },	{ "@LOSSES@", put_losses }, { "@FINDINGS@", put_findings },
	{ "@TIMELINE@", put_timeline }, { "@FLAME@", put_flame },   { "@REPORTS@", put_reports },
};

/* The mark that comes next in the text, and where; NULL: none is left. */
static const char *next_mark(const char *text, size_t *which)
{
	const char *first = NULL, *at;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		at = strstr(text, marks[i].mark);
		if (at && (!first || at < first)) {
			first = at;
			*which = i;
		}
	}
	return first;
}

static int put_page(struct html *h)
{
	const char *at = page, *mark;
	size_t which = 0;
	int err = 0;

	while (!err && (mark = next_mark(at, &which))) {
		fwrite(at, 1, (size_t)(mark - at), h->e->out);
		err = marks[which].put(h);
		at = mark + strlen(marks[which].mark);
	}
	if (!err)
		fputs(at, h->e->out);
	return err || !ferror(h->e->out) ? err : -EIO;
}

static int begin(struct export *e)
{
	struct html *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	e->data = h;
	h->e = e;
	h->facts = *e->facts;
	h->q = (struct query){ .trace = e->trace,
			       .start = e->facts->start,
			       .names = e->names,
			       .facts = &h->facts,
			       .findings = &h->findings };
	h->summary = (struct report_output){ .name = "summary", .for_people = true };
	return profiles__init(&h->profiles, e, false);
}

static int rows(struct export *e, const struct rows *rows)
{
	return profiles__add(&((struct html *)e->data)->profiles, rows);
}

static int end(struct export *e)
{
	struct html *h = e->data;
	int err;

	if (!h)
		return 0;
	err = profiles__finish(&h->profiles);
	/* reading has found what is damaged */
	h->facts.damaged = trace__damaged(e->trace);
	query__limit(&h->q, &h->facts);
	if (!err)
		err = report__run(report__find("summary"), &h->q, &h->summary);
	if (!err)
		err = report_output__failed(&h->summary) ? -ENOMEM : put_page(h);
	report_output__free(&h->summary);
	findings__free(h->findings);
	profiles__free(&h->profiles);
	free(h);
	return err;
}

EXPORTER(html) = {
	.name = "html",
	.doc = "a report for a browser, one HTML file: findings, time line, flame graphs, tables",
	.reads_sources = true,
	.begin = begin,
	.rows = rows,
	.end = end,
};
