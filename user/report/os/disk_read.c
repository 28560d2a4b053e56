// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums the events of family disk by process and file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/disk/disk.h"
#include "report/os/disk.h"
#include "util/array.h"

static int on_files(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), path);
	struct disk_report *d = arg;
	const char *text;
	char **name;
	u32 len;

	ROWS_EACH(v, rows) {
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
	struct io_fields f = {
		.common = common_fields__of(rows__event(rows)),
		.issued = schema_event__field(rows__event(rows), "issued"),
		.bytes = schema_event__field(rows__event(rows), "bytes"),
		.dev = schema_event__field(rows__event(rows), "dev"),
		.ino = schema_event__field(rows__event(rows), "ino"),
		.disk_dev = schema_event__field(rows__event(rows), "disk_dev"),
		.disk = schema_event__field(rows__event(rows), "disk"),
		.op = schema_event__field(rows__event(rows), "op"),
		.asker = schema_event__field(rows__event(rows), "asker"),
		.from = schema_event__field(rows__event(rows), "file_from"),
		.status = schema_event__field(rows__event(rows), "status"),
	};
	int err = 0;

	ROWS_WHILE(!err, v, rows)
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
	struct disk_report *d = arg;
	struct memory_group *g;

	ROWS_EACH(v, rows) {
		g = memory_of(d, &v, false);
		if (!g || stats__add(&g->faults, &d->pool, (u64)view__get(&v, "time") - (u64)view__get(&v, "start")))
			return -ENOMEM;
	}
	return 0;
}

static int on_caches(const struct rows *rows, void *arg)
{
	struct memory_group *g;

	ROWS_EACH(v, rows) {
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
	struct disk_report *d = arg;
	struct stats *s;

	ROWS_EACH(v, rows) {
		struct stall_key key = { (u32)view__get(&v, "pid"), (u32)view__get(&v, "kind") };

		s = map__get(&d->stalls, &key);
		if (!s || stats__add(s, &d->pool, (u64)view__get(&v, "time") - (u64)view__get(&v, "start")))
			return -ENOMEM;
	}
	return 0;
}

static int on_tasks(const struct rows *rows, void *arg)
{
	struct disk_report *d = arg;
	struct process *p;
	u32 pid;

	ROWS_EACH(v, rows) {
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

int disk_report__read(struct disk_report *d, const struct query *args)
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

void disk_report__free(struct disk_report *d)
{
	for (u32 i = 0; i < d->files.n; i++)
		free(*(char **)map__value(&d->files, i));
	for (u32 i = 0; i < d->ios.n; i++)
		stats__free(&((struct io_group *)map__value(&d->ios, i))->time, &d->pool);
	for (u32 i = 0; i < d->memory.n; i++)
		stats__free(&((struct memory_group *)map__value(&d->memory, i))->faults, &d->pool);
	for (u32 i = 0; i < d->stalls.n; i++)
		stats__free(map__value(&d->stalls, i), &d->pool);
	MAPS_FREE(&d->files, &d->ios, &d->memory, &d->stalls, &d->processes);
}
