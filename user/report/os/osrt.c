// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report osrt: system calls by name (nsys's osrt_sum), thread and file, and what they returned. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/facts.h"
#include "model/off_cpu.h"
#include "model/osrt_files.h"
#include "model/stats.h"
#include "model/syscalls.h"
#include "output/text.h"
#include "report/api_columns.h"
#include "report/report.h"

struct thread_call {
	u32 pid, tid, nr;
	u32 unused;
};

struct error_key {
	u32 nr;
	s32 error;
};

struct file_key {
	u32 name, nr; /* number in osrt_files; system call */
};

/* Calls of one kind. */
struct group {
	struct stats time;
	u64 off_ns; /* the part of time off the CPU */
	u64 sleeps; /* sleeps within the calls */
	u64 errors, bytes;
	u64 untimed; /* not in `time`: calls that had not returned, or were refused */
	u64 short_count, short_ns, short_errors; /* below the threshold: counted only */
};

struct osrt {
	const struct query *args;
	const struct schema_field *nr; /* field of event syscall, for names */
	struct stats_pool pool;
	struct map by_name; /* u32 nr -> struct group */
	struct map by_thread; /* struct thread_call -> struct group */
	struct map by_file; /* struct file_key -> struct group */
	struct map errors; /* struct error_key -> u64 */
	struct osrt_files *files;
	struct off_cpu off;
	u64 calls, untimed; /* calls in total; calls without a known duration */
	u64 total, open, longest_open;
	struct thread_call stuck;
	u64 threshold, shorts;
};

static const char *call_name(const struct osrt *o, u32 nr, char *buf, size_t size)
{
	return syscalls__title(o->nr, nr, buf, size);
}

struct fields {
	struct common_fields common;
	const struct schema_field *nr, *file, *bytes, *sleeps;
};

struct one_call {
	struct thread_call key;
	u64 ns, off_ns, bytes, sleeps;
	u32 file;
	u16 flags;
	s64 ret;
};

static bool is_error(s64 ret)
{
	return ret < 0 && ret >= -4095;
}

static int group__add(struct osrt *o, struct group *g, const struct one_call *c)
{
	if (!g)
		return -ENOMEM;
	g->errors += is_error(c->ret);
	g->bytes += c->bytes;
	if (c->flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION)) {
		g->untimed++;
		return 0;
	}
	g->off_ns += c->off_ns;
	g->sleeps += c->sleeps;
	return stats__add(&g->time, &o->pool, c->ns);
}

static int count_error(struct osrt *o, const struct one_call *c)
{
	struct error_key key = { c->key.nr, (s32)c->ret };
	u64 *n = is_error(c->ret) ? map__get(&o->errors, &key) : NULL;

	if (n)
		++*n;
	return n || !is_error(c->ret) ? 0 : -ENOMEM;
}

static bool is_exit(const struct osrt *o, u32 nr)
{
	char name[128];

	call_name(o, nr, name, sizeof(name));
	return !strcmp(name, "exit") || !strcmp(name, "exit_group") || !strcmp(name, "ia32 exit") ||
	       !strcmp(name, "ia32 exit_group");
}

static int on_call(struct osrt *o, const struct view *v, const struct fields *f)
{
	u64 start = (u64)view__s64(v, f->common.start), end = (u64)view__s64(v, f->common.time);
	struct one_call c = {
		.key = { (u32)view__s64(v, f->common.pid), (u32)view__s64(v, f->common.tid), (u32)view__s64(v, f->nr),
			 0 },
		.ns = end - start,
		.bytes = (u64)view__s64(v, f->bytes),
		.sleeps = (u64)view__s64(v, f->sleeps),
		.file = (u32)view__s64(v, f->file),
		.flags = (u16)view__s64(v, f->common.flags),
		.ret = view__s64(v, f->common.ret),
	};
	const struct osrt_file *name = c.file ? osrt_files__find(o->files, c.key.pid, c.file) : NULL;
	struct file_key file = { name ? name->number : 0, c.key.nr };
	bool timed = !(c.flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION));
	int err;

	if (timed)
		c.off_ns = off_cpu__inside(&o->off, c.key.tid, start, end);
	err = group__add(o, map__get(&o->by_name, &c.key.nr), &c);
	if (!err)
		err = group__add(o, map__get(&o->by_thread, &c.key), &c);
	if (!err && name)
		err = group__add(o, map__get(&o->by_file, &file), &c);
	o->calls += timed;
	o->untimed += !timed;
	if (c.flags & EVENT_OPEN) {
		/* exit never returns */
		if (is_exit(o, c.key.nr))
			return err;
		o->open++;
		if (c.ns >= o->longest_open) {
			o->longest_open = c.ns;
			o->stuck = c.key;
		}
	} else if (timed) {
		o->total += c.ns;
	}
	return err ? err : count_error(o, &c);
}

static int on_calls(const struct rows *rows, void *arg)
{
	struct fields f = {
		.common = common_fields__of(rows__event(rows)),
		.nr = schema_event__field(rows__event(rows), "nr"),
		.file = schema_event__field(rows__event(rows), "file"),
		.bytes = schema_event__field(rows__event(rows), "bytes"),
		.sleeps = schema_event__field(rows__event(rows), "sleeps"),
	};
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		if (!syscalls__is_of_probe(f.nr, view__s64(&v, f.nr)))
			err = on_call(arg, &v, &f);
	return err;
}

static int add_short(struct group *g, u64 count, u64 ns, u64 errors)
{
	if (!g)
		return -ENOMEM;
	g->short_count += count;
	g->short_ns += ns;
	g->short_errors += errors;
	return 0;
}

static int on_shorts(const struct rows *rows, void *arg)
{
	struct osrt *o = arg;
	u64 count, ns, errors;
	u32 nr;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		nr = (u32)view__get(&v, "nr");
		if (syscalls__is_of_probe(o->nr, nr))
			continue;
		count = (u64)view__get(&v, "count");
		ns = (u64)view__get(&v, "total");
		errors = (u64)view__get(&v, "errors");
		err = add_short(map__get(&o->by_name, &nr), count, ns, errors);
		o->shorts += count;
		o->calls += count;
		o->total += ns;
	}
	return err;
}

static int on_threshold(const struct rows *rows, void *arg)
{
	ROWS_EACH(v, rows)
		((struct osrt *)arg)->threshold = (u64)view__get(&v, "threshold");
	return 0;
}

static int read_all(struct osrt *o)
{
	const struct schema_event *e = schema__event(trace__schema(o->args->trace), "syscall");
	struct query all = *o->args, shorts = *o->args;
	int err = off_cpu__read(&o->off, o->args);

	/* The last sums are written when tracing ends, for the time since the sums before. */
	if (o->args->facts && shorts.to >= o->args->facts->stop)
		shorts.to = 0;

	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	o->nr = e ? schema_event__field(e, "nr") : NULL;
	if (!err)
		err = osrt_files__new(&o->files, o->args);
	if (!err)
		err = query__read_kind(o->args, "syscall", on_calls, o);
	/* Short calls are summed by process, without threads. */
	if (!err && !o->args->tids.n)
		err = query__read_kind(&shorts, "syscall_short", on_shorts, o);
	if (!err)
		err = query__read_kind(&all, "syscall_threshold", on_threshold, o);
	return err;
}

static const struct column summary_columns[] = {
	API_COLUMNS,
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NEVER },
	{ "sleeps", "Sleeps", VALUE_U64, SHOW_NEVER },
	{ "bytes", "Bytes", VALUE_U64, SHOW_NEVER },
	{ "errors", "Errors", VALUE_U64, SHOW_NEVER },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
	{ "short_calls", "Short calls", VALUE_U64, SHOW_NEVER },
	{ "short_ns", "Time of short calls", VALUE_U64, SHOW_NEVER },
};

static const struct column waits_columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },	 { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS }, { "sleeps", "Sleeps", VALUE_U64, SHOW_COUNT },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },	 { "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "untimed", "Untimed", VALUE_U64, SHOW_COUNT },
};

static const struct column threads_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "thread", "Thread", VALUE_TEXT, SHOW_PLAIN },	 { "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },	 { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "off_cpu_ns", "Off CPU", VALUE_U64, SHOW_NS }, { "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },	 { "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "errors", "Errors", VALUE_U64, SHOW_COUNT },	 { "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column files_columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },	 { "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },	 { "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },	 { "file", "File or socket", VALUE_TEXT, SHOW_PLAIN },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column errors_columns[] = {
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "error", "Error", VALUE_TEXT, SHOW_PLAIN },
	{ "ret", "Returned", VALUE_S64, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
};

static struct value off_cpu_value(const struct osrt *o, u64 ns)
{
	return o->off.is_known ? V_U64(ns) : V_NONE;
}

static void fill_summary(struct osrt *o, struct table *t, struct table *waits)
{
	struct group *g;
	u64 total, calls;
	char name[128];
	bool timed;
	u32 i, nr;

	for (i = 0; i < o->by_name.n; i++) {
		g = map__value(&o->by_name, i);
		nr = *(const u32 *)map__key(&o->by_name, i);
		call_name(o, nr, name, sizeof(name));
		total = g->time.total + g->short_ns;
		calls = g->time.count + g->short_count;
		/* short calls have only a sum */
		timed = g->time.count && !g->short_count;
		table__add(t, V_DBL(table__percent(total, o->total)), V_U64(total), V_U64(calls),
			   calls ? V_DBL((double)total / (double)calls) : V_NONE,
			   timed ? V_DBL(stats__median(&g->time)) : V_NONE, timed ? V_U64(g->time.min) : V_NONE,
			   g->time.count ? V_U64(g->time.max) : V_NONE, timed ? V_DBL(stats__stddev(&g->time)) : V_NONE,
			   V_TEXT(name), off_cpu_value(o, g->off_ns), V_U64(g->sleeps), V_U64(g->bytes),
			   V_U64(g->errors + g->short_errors), V_U64(g->untimed), V_U64(g->short_count),
			   V_U64(g->short_ns));
		if (g->sleeps || g->errors || g->bytes || g->untimed)
			table__add(waits, V_TEXT(name), V_U64(total), off_cpu_value(o, g->off_ns), V_U64(g->sleeps),
				   V_U64(g->bytes), V_U64(g->errors + g->short_errors), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
	table__sort(waits, "total_ns");
}

static void fill_threads(struct osrt *o, struct table *t)
{
	const struct thread_call *k;
	struct group *g;
	char name[128];
	bool timed;
	u32 i;

	for (i = 0; i < o->by_thread.n; i++) {
		k = map__key(&o->by_thread, i);
		g = map__value(&o->by_thread, i);
		timed = g->time.count;
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(NAMES_TITLE(o->args->names, k->pid, k->tid)),
			   V_TEXT(call_name(o, k->nr, name, sizeof(name))), V_U64(g->time.count), V_U64(g->time.total),
			   off_cpu_value(o, g->off_ns), timed ? V_DBL(stats__median(&g->time)) : V_NONE,
			   timed ? V_U64(g->time.max) : V_NONE, V_U64(g->bytes), V_U64(g->errors), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
}

static void fill_files(struct osrt *o, struct table *t)
{
	const struct file_key *k;
	struct group *g;
	char name[128];

	for (u32 i = 0; i < o->by_file.n; i++) {
		k = map__key(&o->by_file, i);
		g = map__value(&o->by_file, i);
		table__add(t, V_TEXT(call_name(o, k->nr, name, sizeof(name))), V_U64(g->time.count),
			   V_U64(g->time.total), g->time.count ? V_U64(g->time.max) : V_NONE, V_U64(g->bytes),
			   V_TEXT(osrt_files__name(o->files, k->name)), V_U64(g->untimed));
	}
	table__sort(t, "total_ns");
}

/* Names also the values of include/linux/errno.h, which interrupted calls return inside the kernel. */
static const char *error_name(s32 error)
{
	const char *name = strerrorname_np(-error);

	switch (error) {
	case -512:
		return "ERESTARTSYS (signal)";
	case -513:
		return "ERESTARTNOINTR (signal)";
	case -514:
		return "ERESTARTNOHAND (signal)";
	case -516:
		return "ERESTART_RESTARTBLOCK (signal)";
	}
	return name ? name : "?";
}

static void fill_errors(struct osrt *o, struct table *t)
{
	const struct error_key *k;
	char name[128];
	u32 i;

	for (i = 0; i < o->errors.n; i++) {
		k = map__key(&o->errors, i);
		table__add(t, V_TEXT(call_name(o, k->nr, name, sizeof(name))), V_TEXT(error_name(k->error)),
			   V_S64(k->error), V_U64(*(u64 *)map__value(&o->errors, i)));
	}
	table__sort(t, "calls");
}

static void add_findings(struct osrt *o, struct report_output *out, const struct table *summary)
{
	char who[64], name[128];
	const struct value *top;

	if (!summary->n_rows)
		return;
	top = table__row(summary, 0);
	if (o->calls) {
		report_output__finding(out, "%s system call%s took %s of their threads' time; %.1f%% of that in %s.",
				       TEXT_COUNT(o->calls), text__s(o->calls), TEXT_NS(o->total), top[API_PERCENT].d,
				       top[API_NAME].text);
		REPORT_FIGURES(out, FIGURE("calls", V_U64(o->calls)), FIGURE("total_ns", V_U64(o->total)),
			       FIGURE("name", top[API_NAME]), FIGURE("time_percent", top[API_PERCENT]),
			       FIGURE("off_cpu_ns", off_cpu_value(o, o->off.counted)));
	}
	if (o->calls && o->off.is_known)
		report_output__finding(out, "For %s of this time the threads were off the CPU.",
				       TEXT_NS(o->off.counted));
	if (o->open)
		report_output__finding(
			out, "%llu call%s had not returned at the end of the trace; the longest was %s of %s, for %s.",
			o->open, text__s(o->open), call_name(o, o->stuck.nr, name, sizeof(name)),
			names__label(o->args->names, who, sizeof(who), o->stuck.pid, o->stuck.tid),
			TEXT_NS(o->longest_open));
	if (o->open)
		REPORT_FIGURES(out, FIGURE("open", V_U64(o->open)), FIGURE("pid", V_U64(o->stuck.pid)),
			       FIGURE("tid", V_U64(o->stuck.tid)), FIGURE("name", V_TEXT(name)),
			       FIGURE("open_ns", V_U64(o->longest_open)));
	if (o->untimed)
		report_output__note(
			out,
			"Calls that had not returned when tracing ended have no duration: they count only in the column Untimed.");
	if (o->threshold)
		report_output__note(out,
				    "%s calls shorter than %s were only counted, by process and second: they are "
				    "only in Num Calls, Total Time and Avg of the first table.",
				    TEXT_COUNT(o->shorts), TEXT_NS(o->threshold));
	if (o->pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
	if (!o->off.is_known)
		report_output__note(out, "Time off the CPU inside of calls is known with family sched: "
					 "`sonde record -t syscall,sched`.");
}

static void free_groups(struct osrt *o, struct map *m)
{
	for (u32 i = 0; i < m->n; i++)
		stats__free(&((struct group *)map__value(m, i))->time, &o->pool);
	map__free(m);
}

static void osrt__free(struct osrt *o)
{
	free_groups(o, &o->by_name);
	free_groups(o, &o->by_thread);
	free_groups(o, &o->by_file);
	osrt_files__free(o->files);
	map__free(&o->errors);
	off_cpu__free(&o->off);
}

static int run(const struct query *args, struct report_output *out)
{
	struct osrt o = { .args = args };
	struct table *summary, *waits, *threads, *files, *errors;
	int err;

	map__init(&o.by_name, sizeof(u32), sizeof(struct group));
	map__init(&o.by_thread, sizeof(struct thread_call), sizeof(struct group));
	map__init(&o.by_file, sizeof(struct file_key), sizeof(struct group));
	map__init(&o.errors, sizeof(struct error_key), sizeof(u64));
	err = read_all(&o);
	summary = REPORT_TABLE(out, "summary", "System calls by name", summary_columns);
	waits = REPORT_TABLE(out, "waits", "What they waited, moved and returned", waits_columns);
	threads = REPORT_TABLE(out, "threads", "System calls by thread", threads_columns);
	files = REPORT_TABLE(out, "files", "System calls by file and socket", files_columns);
	errors = REPORT_TABLE(out, "errors", "Calls that returned an error", errors_columns);
	summary->limit = 30;
	waits->limit = 20;
	threads->limit = 20;
	files->limit = 20;
	errors->limit = 20;
	fill_summary(&o, summary, waits);
	fill_threads(&o, threads);
	fill_files(&o, files);
	fill_errors(&o, errors);
	if (!o.calls && !o.untimed)
		report__nothing(args, out, "No system calls were recorded", "syscall");
	add_findings(&o, out, summary);
	osrt__free(&o);
	return err;
}

REPORT(osrt) = {
	.name = "osrt",
	.doc = "system calls: count, time, bytes and errors by name, thread and file",
	.kinds = "syscall,syscall_short",
	.run = run,
	.groups = "nvtx",
	.nvtx = NVTX_PARTS_SYSCALL,
};
