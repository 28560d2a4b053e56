// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes flame graphs as one HTML page without external resources. The page is flame.html; its data is JSON in a script
 * element that is never run. Targets choose all names in it: bytes that could end the element or be read as markup are
 * written as \uNNNN, and the page shows names only as text.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "export/flame.h"
#include "output/html.h"
#include "output/text.h"

#define MARK "@DATA@"

#include "flame.html.inc"

static void put_about(struct export *e)
{
	const struct trace_head *head = e->facts->head;
	time_t at = (time_t)(trace_facts__realtime(e->facts, e->facts->start) / 1000000000);
	char when[64] = "", about[1024];
	struct tm tm;

	if (gmtime_r(&at, &tm))
		strftime(when, sizeof(when), "%F %T UTC", &tm);
	snprintf(about, sizeof(about), "%s, %s, %s", head->hostname ? head->hostname : "?", when,
		 head->command ? head->command : "?");
	fputs("{\"title\":", e->out);
	html__put_json(e->out, e->facts->file);
	fputs(",\"about\":", e->out);
	html__put_json(e->out, about);
}

/* States what the trace lacks, so that readers do not take the graph for complete. */
static void put_missing(struct export *e)
{
	const struct trace_facts *facts = e->facts;
	char text[1024] = "";
	size_t used = 0;

	for (u32 i = 0; i < facts->n_losses && used < sizeof(text) - 1; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %llu (%s)", i ? ", " : "Missing: ",
					 facts->losses[i].family_name ? facts->losses[i].family_name : "?",
					 facts->losses[i].count, loss__reason(facts->losses[i].reason));
	if (!facts->end_reason && used < sizeof(text) - 1)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%sThe recording %s.", used ? ". " : "",
					 facts->summary->being_recorded ? "still went on" : "was cut off");
	if (facts->damaged && used < sizeof(text) - 1)
		snprintf(text + used, sizeof(text) - used, "%sThe file is damaged.", used ? " " : "");
	fputs(",\"missing\":", e->out);
	html__put_json(e->out, text);
}

static void put_functions(FILE *out, const struct call_functions *f)
{
	fputs(",\"functions\":[", out);
	for (u32 i = 0; i < f->n; i++) {
		fputs(i ? ",\n[" : "\n[", out);
		html__put_json(out, f->list[i].name);
		putc(',', out);
		html__put_json(out, f->list[i].file);
		fprintf(out, ",%u,%u]", f->list[i].first_line, f->list[i].kind);
	}
	putc(']', out);
}

static void put_doc(FILE *out, const struct stack_profile *p)
{
	char text[256], least[TEXT_NUMBER];

	if (!p->min_ns)
		snprintf(text, sizeof(text), "%s", p->kind.doc);
	else
		snprintf(text, sizeof(text), "%s; what has less than %s is part of its caller", p->kind.doc,
			 p->in_ns ? text__ns(least, sizeof(least), p->min_ns) :
				    text__count(least, sizeof(least), p->min_ns));
	html__put_json(out, text);
}

static void put_view(FILE *out, const struct stack_profile *p)
{
	fputs("{\"id\":", out);
	html__put_json(out, p->kind.name);
	fputs(",\"title\":", out);
	html__put_json(out, p->kind.title);
	fputs(",\"doc\":", out);
	put_doc(out, p);
	fprintf(out, ",\"parts\":\"%s\"", p->kind.from == PROFILE_GIL_SEGMENTS ? "parts of waits" : "events");
	fprintf(out, ",\"unit\":\"%s\",\"events\":%llu,\"without\":%llu,\"nodes\":[",
		p->in_ns || !p->event ? "ns" : "count", p->events, p->without_stack);
	for (u32 i = 0; i < p->tree.n; i++) {
		const struct call_node *n = &p->tree.nodes[i];

		fprintf(out, "%s%u,%u,%llu,%llu", i ? "," : "", n->parent, n->function, p->in_ns ? n->self : n->count,
			n->count);
	}
	fputs("]}", out);
}

int flame__put_page(struct export *e, const struct profiles *p)
{
	const char *mark = strstr(page, MARK);

	fwrite(page, 1, (size_t)(mark - page), e->out);
	put_about(e);
	put_missing(e);
	put_functions(e->out, &p->functions);
	fputs(",\"views\":[", e->out);
	for (u32 i = 0; i < p->n; i++) {
		fputs(i ? ",\n" : "\n", e->out);
		put_view(e->out, &p->list[i]);
	}
	fputs("]}", e->out);
	fputs(mark + strlen(MARK), e->out);
	return ferror(e->out) ? -EIO : 0;
}

static int end(struct export *e)
{
	return profiles__end(e, false, flame__put_page);
}

EXPORTER(flame) = {
	.name = "flame",
	.doc = "a page with flame graphs, one HTML file: on-CPU, off-CPU, GIL wait and blame, PyTorch",
	.check = profiles__check,
	.begin = profiles__begin,
	.rows = profiles__rows,
	.end = end,
};
