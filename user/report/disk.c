// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report disk: block I/O by process and file, page faults, cache misses, waits for memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stats.h"
#include "output/text.h"
#include "probes/disk/disk.h"
#include "report/report.h"
#include "util/array.h"

static const char *const ops[] = {
	[DISK_READ] = "read",
	[DISK_WRITE] = "write",
	[DISK_FLUSH] = "flush",
	[DISK_DISCARD] = "discard",
	[DISK_WRITE_ZEROES] = "write zeroes",
	[DISK_OTHER] = "other",
};
static const char *const stalls[] = {
	[DISK_RECLAIM] = "reclaim",
	[DISK_RECLAIM_CGROUP] = "cgroup reclaim",
	[DISK_COMPACTION] = "compaction",
};

static const char *op_name(u32 op)
{
	return ops[op < DISK_OTHER ? op : DISK_OTHER];
}

struct file_key {
	u64 dev, ino;
};

struct io_key {
	struct file_key file;
	u32 pid, op, from, asker;
	u32 disk_dev, unused;
};

struct io_group {
	struct stats time;
	u64 bytes, queue_ns, device_ns, open, errors, by_call;
	char disk[17];
};

struct memory_key {
	struct file_key file;
	u32 pid, from;
};

struct memory_group {
	struct stats faults;
	u64 missed, written;
};

struct stall_key {
	u32 pid, kind;
};

struct process {
	u64 major, minor, read, written;
};

struct disk_report {
	const struct query *args;
	struct map files; /* struct file_key -> char *, the name */
	struct map ios; /* struct io_key -> struct io_group */
	struct map memory; /* struct memory_key -> struct memory_group */
	struct map stalls; /* struct stall_key -> struct stats */
	struct map processes; /* u32 -> struct process */
	struct stats_pool pool;
};

static int on_files(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	const struct schema_field *path = schema_event__field(v.event, "path");
	struct disk_report *d = arg;
	const char *text;
	char **name;
	u32 len;

	for (; v.i < rows__count(rows); v.i++) {
		struct file_key key = { (u64)view__get(&v, "dev"), (u64)view__get(&v, "ino") };

		text = view__text(&v, path, &len);
		if (!len)
			continue;
		name = map__get(&d->files, &key);
		if (!name)
			return -ENOMEM;
		/* the last name is the valid one, because inode numbers are reused */
		free(*name);
		*name = strndup(text, len);
		if (!*name)
			return -ENOMEM;
	}
	return 0;
}

struct io_fields {
	struct common_fields common;
	const struct schema_field *issued, *bytes, *dev, *ino, *disk_dev, *disk, *op, *asker, *from, *status;
};

static int on_io(struct disk_report *d, const struct view *v, const struct io_fields *f)
{
	u64 start = (u64)view__s64(v, f->common.start), end = (u64)view__s64(v, f->common.time);
	u64 issued = (u64)view__s64(v, f->issued);
	u32 from = (u32)view__s64(v, f->from);
	struct io_key key = {
		.file = { (u64)view__s64(v, f->dev), (u64)view__s64(v, f->ino) },
		.pid = (u32)view__s64(v, f->common.pid),
		.op = (u32)view__s64(v, f->op),
		.from = from == DISK_FILE_CALL ? DISK_FILE_PAGE_CACHE : from,
		.asker = (u32)view__s64(v, f->asker),
		.disk_dev = (u32)view__s64(v, f->disk_dev),
	};
	struct io_group *g = map__get(&d->ios, &key);
	const char *disk;
	u32 len;

	if (!g)
		return -ENOMEM;
	disk = view__text(v, f->disk, &len);
	if (!*g->disk && len < sizeof(g->disk))
		memcpy(g->disk, disk, len);
	/* The duration is not known. */
	if (view__s64(v, f->common.flags) & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN)) {
		g->open++;
		return 0;
	}
	g->by_call += from == DISK_FILE_CALL;
	g->errors += view__s64(v, f->status) != 0;
	g->bytes += (u64)view__s64(v, f->bytes);
	/* A flush is in the device from its start. */
	if (issued < start || issued > end)
		issued = start;
	g->queue_ns += issued - start;
	g->device_ns += end - issued;
	return stats__add(&g->time, &d->pool, end - start);
}

static int on_ios(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct io_fields f = {
		.common = common_fields__of(v.event),
		.issued = schema_event__field(v.event, "issued"),
		.bytes = schema_event__field(v.event, "bytes"),
		.dev = schema_event__field(v.event, "dev"),
		.ino = schema_event__field(v.event, "ino"),
		.disk_dev = schema_event__field(v.event, "disk_dev"),
		.disk = schema_event__field(v.event, "disk"),
		.op = schema_event__field(v.event, "op"),
		.asker = schema_event__field(v.event, "asker"),
		.from = schema_event__field(v.event, "file_from"),
		.status = schema_event__field(v.event, "status"),
	};
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_io(arg, &v, &f);
	return err;
}

static struct memory_group *memory_of(struct disk_report *d, const struct view *v, bool metadata)
{
	struct memory_key key = { { (u64)view__get(v, "dev"), (u64)view__get(v, "ino") }, (u32)view__get(v, "pid"), 0 };

	key.from = metadata ? DISK_FILE_METADATA : key.file.ino ? DISK_FILE_PAGE_CACHE : DISK_FILE_NONE;
	return map__get(&d->memory, &key);
}

static int on_faults(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct disk_report *d = arg;
	struct memory_group *g;

	for (; v.i < rows__count(rows); v.i++) {
		g = memory_of(d, &v, false);
		if (!g || stats__add(&g->faults, &d->pool, (u64)view__get(&v, "time") - (u64)view__get(&v, "start")))
			return -ENOMEM;
	}
	return 0;
}

static int on_caches(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct memory_group *g;

	for (; v.i < rows__count(rows); v.i++) {
		g = memory_of(arg, &v, view__get(&v, "file_from") == DISK_FILE_METADATA);
		if (!g)
			return -ENOMEM;
		g->missed += (u64)view__get(&v, "missed");
		g->written += (u64)view__get(&v, "written");
	}
	return 0;
}

static int on_stalls(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct disk_report *d = arg;
	struct stats *s;

	for (; v.i < rows__count(rows); v.i++) {
		struct stall_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "kind") };

		s = map__get(&d->stalls, &key);
		if (!s || stats__add(s, &d->pool, (u64)view__get(&v, "time") - (u64)view__get(&v, "start")))
			return -ENOMEM;
	}
	return 0;
}

static int on_tasks(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct disk_report *d = arg;
	struct process *p;
	u32 pid;

	for (; v.i < rows__count(rows); v.i++) {
		pid = (u32)view__get(&v, "pid");
		p = map__get(&d->processes, &pid);
		if (!p)
			return -ENOMEM;
		p->major += (u64)view__get(&v, "major");
		p->minor += (u64)view__get(&v, "minor");
		p->read += (u64)view__get(&v, "read");
		p->written += (u64)view__get(&v, "written");
	}
	return 0;
}

static int read_all(struct disk_report *d, const struct query *args)
{
	static const struct {
		const char *kind;
		int (*cb)(const struct rows *rows, void *arg);
	} kinds[] = { { "disk_io", on_ios },
		      { "disk_fault", on_faults },
		      { "disk_cache", on_caches },
		      { "disk_stall", on_stalls },
		      { "disk_task", on_tasks } };
	struct query everything = *args;
	int err;

	d->args = args;
	map__init(&d->files, sizeof(struct file_key), sizeof(char *));
	map__init(&d->ios, sizeof(struct io_key), sizeof(struct io_group));
	map__init(&d->memory, sizeof(struct memory_key), sizeof(struct memory_group));
	map__init(&d->stalls, sizeof(struct stall_key), sizeof(struct stats));
	map__init(&d->processes, sizeof(u32), sizeof(struct process));
	/* a file's name is recorded once, with the first process that used it */
	everything.from = everything.to = 0;
	everything.pids.n = everything.tids.n = 0;
	err = query__read_kind(&everything, "disk_file", on_files, d);
	for (u32 i = 0; !err && i < ARRAY_LEN(kinds); i++)
		err = query__read_kind(args, kinds[i].kind, kinds[i].cb, d);
	return err;
}

static void free_all(struct disk_report *d)
{
	for (u32 i = 0; i < d->files.n; i++)
		free(*(char **)map__value(&d->files, i));
	for (u32 i = 0; i < d->ios.n; i++)
		stats__free(&((struct io_group *)map__value(&d->ios, i))->time, &d->pool);
	for (u32 i = 0; i < d->memory.n; i++)
		stats__free(&((struct memory_group *)map__value(&d->memory, i))->faults, &d->pool);
	for (u32 i = 0; i < d->stalls.n; i++)
		stats__free(map__value(&d->stalls, i), &d->pool);
	map__free(&d->files);
	map__free(&d->ios);
	map__free(&d->memory);
	map__free(&d->stalls);
	map__free(&d->processes);
}

/* Returns a file's name, or its device and inode numbers with the reason why the name is not known. */
static const char *file_name(const struct disk_report *d, const struct file_key *key, u32 from, char *buf, size_t size)
{
	char **name = map__find(&d->files, key);

	if (from == DISK_FILE_METADATA)
		snprintf(buf, size, "[metadata of %u:%u]", (u32)(key->dev >> 20), (u32)(key->dev & 0xfffff));
	else if (from && name)
		return *name;
	else if (from)
		snprintf(buf, size, "[inode %llu of %u:%u]", (unsigned long long)key->ino, (u32)(key->dev >> 20),
			 (u32)(key->dev & 0xfffff));
	else
		snprintf(buf, size, "[not known]");
	return buf;
}

static const struct column io_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "asker", "For", VALUE_TEXT, SHOW_PLAIN },
	{ "op", "Op", VALUE_TEXT, SHOW_PLAIN },
	{ "ios", "I/Os", VALUE_U64, SHOW_COUNT },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NEVER },
	{ "p99_ns", "p99", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "queued_ns", "Queued", VALUE_U64, SHOW_NS },
	{ "device_ns", "In device", VALUE_U64, SHOW_NS },
	{ "errors", "Errors", VALUE_U64, SHOW_NEVER },
	{ "open", "Not ended", VALUE_U64, SHOW_NEVER },
	{ "disk", "Disk", VALUE_TEXT, SHOW_PLAIN },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "dev", "File's device", VALUE_U64, SHOW_NEVER },
	{ "ino", "Inode", VALUE_U64, SHOW_NEVER },
	{ "by_call", "File known by the call", VALUE_U64, SHOW_NEVER },
};

static void fill_ios(struct disk_report *d, struct table *t)
{
	char file[96];

	for (u32 i = 0; i < d->ios.n; i++) {
		const struct io_key *k = map__key(&d->ios, i);
		struct io_group *g = map__value(&d->ios, i);
		bool any = g->time.count != 0;

		table__add(t, V_U64(k->pid), V_TEXT(names__comm(d->args->names, k->pid, 0)),
			   V_TEXT(k->asker == DISK_BY_WRITEBACK ? "writeback" :
				  k->asker == DISK_BY_KERNEL	? "kernel" :
								  "itself"),
			   V_TEXT(op_name(k->op)), V_U64(g->time.count), V_U64(g->bytes), V_U64(g->time.total),
			   any ? V_DBL(stats__median(&g->time)) : V_NONE, any ? V_DBL(g->time.mean) : V_NONE,
			   any ? V_U64(stats__percentile(&g->time, 99)) : V_NONE, any ? V_U64(g->time.max) : V_NONE,
			   V_U64(g->queue_ns), V_U64(g->device_ns), V_U64(g->errors), V_U64(g->open), V_TEXT(g->disk),
			   V_TEXT(file_name(d, &k->file, k->from, file, sizeof(file))), V_U64(k->file.dev),
			   V_U64(k->file.ino), V_U64(g->by_call));
	}
	table__sort(t, "total_ns");
}

static const struct column memory_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "faults", "Major faults", VALUE_U64, SHOW_COUNT },
	{ "fault_ns", "Total", VALUE_U64, SHOW_NS },
	{ "fault_median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "fault_max_ns", "Max", VALUE_U64, SHOW_NS },
	{ "missed_bytes", "Cache misses", VALUE_U64, SHOW_BYTES },
	{ "written_bytes", "Cached by writes", VALUE_U64, SHOW_BYTES },
	{ "file", "File", VALUE_TEXT, SHOW_PLAIN },
	{ "dev", "File's device", VALUE_U64, SHOW_NEVER },
	{ "ino", "Inode", VALUE_U64, SHOW_NEVER },
};

static void fill_memory(struct disk_report *d, struct table *t)
{
	char file[96];

	for (u32 i = 0; i < d->memory.n; i++) {
		const struct memory_key *k = map__key(&d->memory, i);
		struct memory_group *g = map__value(&d->memory, i);
		bool any = g->faults.count != 0;

		table__add(t, V_U64(k->pid), V_TEXT(names__comm(d->args->names, k->pid, 0)), V_U64(g->faults.count),
			   V_U64(g->faults.total), any ? V_DBL(stats__median(&g->faults)) : V_NONE,
			   any ? V_U64(g->faults.max) : V_NONE, V_U64(g->missed), V_U64(g->written),
			   V_TEXT(file_name(d, &k->file, k->from, file, sizeof(file))), V_U64(k->file.dev),
			   V_U64(k->file.ino));
	}
	table__sort(t, "missed_bytes");
	table__sort(t, "fault_ns");
}

static const struct column stall_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },     { "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },  { "stalls", "Stalls", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS }, { "median_ns", "Median", VALUE_DOUBLE, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },
};

static void fill_stalls(struct disk_report *d, struct table *t)
{
	for (u32 i = 0; i < d->stalls.n; i++) {
		const struct stall_key *k = map__key(&d->stalls, i);
		struct stats *s = map__value(&d->stalls, i);

		table__add(t, V_U64(k->pid), V_TEXT(names__comm(d->args->names, k->pid, 0)),
			   V_TEXT(k->kind < ARRAY_LEN(stalls) ? stalls[k->kind] : "other"), V_U64(s->count),
			   V_U64(s->total), V_DBL(stats__median(s)), V_U64(s->max));
	}
	table__sort(t, "total_ns");
}

static const struct column process_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "major_faults", "Major faults", VALUE_U64, SHOW_COUNT },
	{ "minor_faults", "Minor faults", VALUE_U64, SHOW_COUNT },
	{ "read_bytes", "Read", VALUE_U64, SHOW_BYTES },
	{ "written_bytes", "Written", VALUE_U64, SHOW_BYTES },
};

static void fill_processes(struct disk_report *d, struct table *t)
{
	for (u32 i = 0; i < d->processes.n; i++) {
		const struct process *p = map__value(&d->processes, i);
		u32 pid = *(const u32 *)map__key(&d->processes, i);

		table__add(t, V_U64(pid), V_TEXT(names__comm(d->args->names, pid, 0)), V_U64(p->major), V_U64(p->minor),
			   V_U64(p->read), V_U64(p->written));
	}
	table__sort(t, "minor_faults");
	table__sort(t, "major_faults");
	table__sort(t, "written_bytes");
	table__sort(t, "read_bytes");
}

static void add_findings(const struct disk_report *d, struct report_output *out)
{
	u64 n = 0, bytes = 0, queue = 0, device = 0, most = 0, errors = 0, stall = 0;
	char number[TEXT_NUMBER], size[TEXT_NUMBER], who[64], file[96];
	const struct io_key *worst = NULL;

	for (u32 i = 0; i < d->ios.n; i++) {
		const struct io_group *g = map__value(&d->ios, i);

		n += g->time.count;
		bytes += g->bytes;
		queue += g->queue_ns;
		device += g->device_ns;
		errors += g->errors;
		if (g->time.total > most) {
			most = g->time.total;
			worst = map__key(&d->ios, i);
		}
	}
	for (u32 i = 0; i < d->stalls.n; i++)
		stall += ((const struct stats *)map__value(&d->stalls, i))->total;
	if (n)
		report_output__finding(out, "%s I/O%s moved %s; %.0f%% of %s time %s queued, not in the device.",
				       text__count(number, sizeof(number), n), text__s(n),
				       text__bytes(size, sizeof(size), bytes),
				       queue + device ? 100.0 * (double)queue / (double)(queue + device) : 0,
				       n == 1 ? "its" : "their", n == 1 ? "it was" : "they were");
	if (worst)
		report_output__finding(out, "Most of it: %s, %s of %s, %s together.",
				       names__label(d->args->names, who, sizeof(who), worst->pid, 0),
				       op_name(worst->op), file_name(d, &worst->file, worst->from, file, sizeof(file)),
				       text__ns(number, sizeof(number), most));
	if (errors)
		report_output__finding(out, "%s I/Os failed.", text__count(number, sizeof(number), errors));
	if (stall)
		report_output__finding(out, "Threads freed or moved memory themselves for %s.",
				       text__ns(number, sizeof(number), stall));
}

static int run(const struct query *args, struct report_output *out)
{
	struct disk_report d = { 0 };
	int err = read_all(&d, args);
	struct table *t;

	t = REPORT_TABLE(out, "ios", "Block I/O by process and file", io_columns);
	t->limit = 40;
	fill_ios(&d, t);
	t = REPORT_TABLE(out, "memory", "Pages that had to come from a disk, by process and file", memory_columns);
	t->limit = 40;
	fill_memory(&d, t);
	t = REPORT_TABLE(out, "stalls", "Threads that had to make room in memory themselves", stall_columns);
	fill_stalls(&d, t);
	t = REPORT_TABLE(out, "processes", "What the kernel counted by process", process_columns);
	t->limit = 40;
	fill_processes(&d, t);
	if (!d.ios.n && !d.memory.n && !d.stalls.n && d.processes.n)
		report_output__finding(out, "No disk I/O was requested: what was read came from memory, what was "
					    "written stayed there.");
	if (!d.ios.n && !d.memory.n && !d.stalls.n && !d.processes.n)
		report__nothing(args, out, "No disk I/O was recorded", "disk");
	add_findings(&d, out);
	if (d.pool.approximate)
		report_output__note(out, "Medians and p99 of groups beyond %u I/Os are within 0.4%%.", STATS_EXACT);
	free_all(&d);
	return err;
}

REPORT(disk) = {
	.name = "disk",
	.doc = "block I/O by process and file, page faults, cache misses, waits for memory",
	.kinds = "disk",
	.run = run,
};
