// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls of libtiny and requested bytes by process: the example of docs/adding-a-report.md. */
#include <errno.h>

#include "output/text.h"
#include "report/report.h"

struct work_sums {
	u64 calls, bytes, ns;
};

struct tiny_report {
	const struct query *args;
	struct map processes; /* u32 pid -> struct work_sums */
};

static int on_work(const struct rows *rows, void *arg)
{
	struct common_fields f = common_fields__of(rows__event(rows));
	FIELDS_OF(rows__event(rows), bytes);
	struct tiny_report *r = arg;

	ROWS_EACH(v, rows) {
		u32 pid = (u32)view__s64(&v, f.pid);
		struct work_sums *a = map__get(&r->processes, &pid);

		if (!a)
			return -ENOMEM;
		a->calls++;
		a->bytes += (u64)view__s64(&v, bytes);
		a->ns += query__inside(r->args, (u64)view__s64(&v, f.start), (u64)view__s64(&v, f.time));
	}
	return 0;
}

static const struct column columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },     { "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT }, { "bytes", "Requested", VALUE_U64, SHOW_BYTES },
	{ "total_ns", "Time", VALUE_U64, SHOW_NS },
};

static void add_finding(const struct tiny_report *r, struct report_output *out)
{
	u64 all = 0, most = 0;
	char label[64];
	u32 pid = 0;

	for (u32 i = 0; i < r->processes.n; i++) {
		const struct work_sums *a = map__value(&r->processes, i);

		all += a->bytes;
		if (a->bytes < most)
			continue;
		most = a->bytes;
		pid = *(const u32 *)map__key(&r->processes, i);
	}
	if (!all)
		return;
	report_output__finding(out, "%s asked libtiny for %.0f%% of all bytes.",
			       names__label(r->args->names, label, sizeof(label), pid, 0), table__percent(most, all));
	REPORT_FIGURES(out, FIGURE("pid", V_U64(pid)), FIGURE("bytes_percent", V_DBL(table__percent(most, all))));
}

static int run(const struct query *args, struct report_output *out)
{
	struct tiny_report r = { .args = args };
	struct table *t = REPORT_TABLE(out, "processes", "Calls of libtiny by process", columns);
	int err;

	map__init(&r.processes, sizeof(u32), sizeof(struct work_sums));
	err = query__read_kind(args, "tiny_work", on_work, &r);
	for (u32 i = 0; !err && i < r.processes.n; i++) {
		const struct work_sums *a = map__value(&r.processes, i);
		u32 pid = *(const u32 *)map__key(&r.processes, i);

		table__add(t, V_U64(pid), V_TEXT(names__comm(args->names, pid, 0)), V_U64(a->calls), V_U64(a->bytes),
			   V_U64(a->ns));
	}
	table__sort(t, "total_ns");
	if (!err && !r.processes.n)
		report__nothing(args, out, "No call of libtiny was recorded", "tiny");
	add_finding(&r, out);
	map__free(&r.processes);
	return err;
}

REPORT(tiny) = {
	.name = "tiny",
	.doc = "calls of libtiny by process",
	.kinds = "tiny_work",
	.summary = 5,
	.run = run,
};
