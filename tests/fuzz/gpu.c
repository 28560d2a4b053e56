// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as a target's shim records (core/shim.h): a byte for the kind, one for the time, and 16-bit values
 * that fill the body. They become events as BPF would emit them, with the kinds, sizes and times that it accepts, and
 * every report and format reads the trace.
 */
#include <errno.h>
#include <string.h>

#include "../unit/gpu_support.h"
#include "export/export.h"
#include "fuzz.h"
#include "report/origin.h"
#include "report/report.h"

#define NAME_BYTES 16 /* length of a text that follows */

struct source {
	const uint8_t *at;
	size_t left;
};

static u64 take(struct source *in, size_t n)
{
	u64 v = 0;

	n = n < in->left ? n : in->left;
	memcpy(&v, in->at, n);
	in->at += n;
	in->left -= n;
	return v;
}

/* Small values, so that correlation ids, streams and devices of records match. */
static void fill(struct source *in, const struct schema_event *e, u8 *record)
{
	for (u32 i = 0; i < e->n; i++) {
		const struct schema_field *f = &e->fields[i];
		u64 v;

		if (f->offset < sizeof(struct event) || f->type == FIELD_TAIL || f->size > sizeof(v) ||
		    (e->is_span && f->offset < sizeof(struct span)))
			continue;
		v = take(in, 1);
		v = v == 0xff ? take(in, f->size) : v == 0xfe ? ~0ULL : v;
		memcpy(record + f->offset, &v, f->size);
	}
}

static void add_event(struct made *g, struct source *in)
{
	static const u8 families[] = { EVENT_FAMILY(ID_gpu_kernel), EVENT_FAMILY(ID_gpu_kernel), 0x03, 0x06, 0x01 };
	u8 kind = (u8)take(in, 1), span = (u8)take(in, 1);
	const struct schema_event *e =
		schema__event_by_id(g->e.schema, families[kind >> 4 < 5 ? kind >> 4 : 0] << 8 | (kind & 15));
	u8 record[RECORD_MAX] __attribute__((aligned(8))) = {};
	struct span *head = (struct span *)record;
	static u64 now;
	u32 size;

	if (!e || e->size + NAME_BYTES > sizeof(record))
		return;
	now += 1000;
	fill(in, e, record);
	size = e->size;
	if (e->n && e->fields[e->n - 1].type == FIELD_TAIL)
		for (u32 i = 0; i < NAME_BYTES && in->left; i++)
			record[size++] = (u8)take(in, 1);
	head->event.id = e->id;
	head->event.pid = head->event.tid = 1 + (span & 1);
	head->event.time = now;
	if (e->is_span)
		head->start = now - span;
	trace_writer__append(g->w, record, size);
}

struct readers {
	struct query args;
	struct export export;
};

static void run_report(const struct report *r, void *arg)
{
	static const enum output_format formats[] = { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };
	struct readers *with = arg;
	struct report_output out = { .name = r->name, .origin = trace_origin(with->args.facts) };

	/* left out, as it reads source files named in the trace */
	if (!strcmp(r->name, "lines"))
		return;
	if (!r->run(&with->args, &out))
		for (u32 i = 0; i < 3; i++)
			report_output__print(&out, &(struct output_options){ .format = formats[i], .rows = -1 },
					     with->export.out);
	report_output__free(&out);
}

static void run_export(const struct exporter *x, void *arg)
{
	struct export e = ((struct readers *)arg)->export;
	struct trace_filter filter = {};

	if (x->one_kind || x->needs_file)
		return;
	if (export__run(&e, x, &filter) == -EINVAL)
		abort();
}

static void read_all(struct made *g)
{
	struct trace_facts facts = {};
	struct stacks *stacks = NULL;
	struct readers with = {
		.args = { .trace = g->trace, .names = g->names, .facts = &facts },
		.export = { .trace = g->trace, .facts = &facts, .names = g->names, .path = "x" },
	};

	with.export.out = fopen("/dev/null", "we");
	if (!trace_facts__load(&facts, g->trace, "fuzz", 0, 0) && !stacks__load(&stacks, g->trace) && with.export.out) {
		with.export.stacks = stacks;
		report__each(run_report, &with);
		exporter__each(run_export, &with);
	}
	if (with.export.out)
		fclose(with.export.out);
	stacks__free(stacks);
	trace_facts__free(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct made g;
	struct source in = { data, size };
	struct embedded kept = g.e;
	char err[256];

	memset(&g, 0, sizeof(g));
	g.e = kept;
	if (!g.e.schema && embedded__open(&g.e, err, sizeof(err)))
		abort();
	g.fd = memfd_create("gpu", MFD_CLOEXEC);
	snprintf(g.path, sizeof(g.path), "/proc/self/fd/%d", g.fd);
	if (g.fd < 0 || trace_writer__create(&g.w, g.fd, g.e.schema, &(struct trace_head){ .hostname = "made-up" }))
		abort();
	while (in.left)
		add_event(&g, &in);
	if (made__open(&g))
		read_all(&g);
	gpu_model__free(g.model);
	names__free(g.names);
	trace__close(g.trace);
	trace_writer__free(g.w);
	close(g.fd);
	return 0;
}
