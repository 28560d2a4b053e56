// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report disk: block I/O by process and file, page faults, cache misses, waits for memory. */
#include <stdio.h>

#include "output/text.h"
#include "probes/disk/disk.h"
#include "report/os/disk.h"
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
	{ "asker", "Issued by", VALUE_TEXT, SHOW_PLAIN },
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
	{ "named_by_call", "File known by the call", VALUE_U64, SHOW_NEVER },
};

static void fill_ios(struct disk_report *d, struct table *t)
{
	char file[96];

	MAP_EACH_ENTRY(struct io_group *g, const struct io_key *k, &d->ios) {
		bool any = g->time.count != 0;

		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(d->args->names, k->pid, 0)),
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

	MAP_EACH_ENTRY(struct memory_group *g, const struct memory_key *k, &d->memory) {
		bool any = g->faults.count != 0;

		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(d->args->names, k->pid, 0)), V_U64(g->faults.count),
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
	MAP_EACH_ENTRY(struct stats *s, const struct stall_key *k, &d->stalls)
		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(d->args->names, k->pid, 0)),
			   V_TEXT(k->kind < ARRAY_LEN(stalls) ? stalls[k->kind] : "other"), V_U64(s->count),
			   V_U64(s->total), V_DBL(stats__median(s)), V_U64(s->max));
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
	MAP_EACH_ENTRY(const struct process *p, const u32 *pid, &d->processes)
		table__add(t, V_U64(*pid), V_TEXT(NAMES_TITLE(d->args->names, *pid, 0)), V_U64(p->major),
			   V_U64(p->minor), V_U64(p->read), V_U64(p->written));
	table__sort(t, "minor_faults");
	table__sort(t, "major_faults");
	table__sort(t, "written_bytes");
	table__sort(t, "read_bytes");
}

static void add_findings(const struct disk_report *d, struct report_output *out)
{
	u64 n = 0, bytes = 0, queue = 0, device = 0, most = 0, errors = 0, stall = 0;
	char who[64], file[96];
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
		report_output__finding(out, "%s I/O%s moved %s; for %.0f%% of %s time %s queued and not in the device.",
				       TEXT_COUNT(n), text__s(n), TEXT_BYTES(bytes),
				       queue + device ? 100.0 * (double)queue / (double)(queue + device) : 0,
				       n == 1 ? "its" : "their", n == 1 ? "it was" : "they were");
	if (worst)
		report_output__finding(out, "Most of their time: %s, %s of %s, %s in total.",
				       names__label(d->args->names, who, sizeof(who), worst->pid, 0),
				       op_name(worst->op), file_name(d, &worst->file, worst->from, file, sizeof(file)),
				       TEXT_NS(most));
	if (errors)
		report_output__finding(out, "%s I/Os failed.", TEXT_COUNT(errors));
	if (stall)
		report_output__finding(out, "Threads reclaimed or compacted memory themselves for %s.", TEXT_NS(stall));
}

static int run(const struct query *args, struct report_output *out)
{
	struct disk_report d = { 0 };
	int err = disk_report__read(&d, args);
	struct table *t;

	t = REPORT_TABLE(out, "ios", "Block I/O by process and file", io_columns);
	t->limit = 40;
	t->details = "asker median_ns queued_ns";
	fill_ios(&d, t);
	t = REPORT_TABLE(out, "memory", "Pages that were read from a disk, by process and file", memory_columns);
	t->limit = 40;
	fill_memory(&d, t);
	t = REPORT_TABLE(out, "stalls", "Threads that reclaimed or compacted memory themselves", stall_columns);
	fill_stalls(&d, t);
	t = REPORT_TABLE(out, "processes", "What the kernel counted by process", process_columns);
	t->limit = 40;
	fill_processes(&d, t);
	if (!d.ios.n && !d.memory.n && !d.stalls.n && d.processes.n)
		report_output__finding(out,
				       "No disk I/O was requested: all reads were served from memory, and what was "
				       "written is still there.");
	if (!d.ios.n && !d.memory.n && !d.stalls.n && !d.processes.n)
		report__nothing(args, out, "No disk I/O was recorded", "disk");
	add_findings(&d, out);
	if (d.pool.approximate)
		report_output__note(out, "Medians and p99 of groups beyond %u I/Os are within 0.4%%.", STATS_EXACT);
	disk_report__free(&d);
	return err;
}

REPORT(disk) = {
	.name = "disk",
	.doc = "block I/O by process and file, page faults, cache misses, waits for memory",
	.kinds = "disk",
	.run = run,
};
