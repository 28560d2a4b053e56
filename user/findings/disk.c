// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds waits for disks: the file, the calls, and the mean duration of the requests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/group.h"
#include "findings/memory_limit.h"
#include "output/text.h"

/* Requests or page faults of one process, by file */
struct request_key {
	u32 pid, op;
	u64 dev, ino;
};

struct requests {
	u64 ns, n;
	char disk[17];
};

struct file_key {
	u64 dev, ino;
};

struct file_name {
	char text[256];
};

struct disks {
	const struct query *q;
	struct map requests; /* struct request_key -> struct requests */
	struct map names; /* struct file_key -> struct file_name */
	struct map largest; /* u32 pid -> u32 index in requests plus 1 */
};

/* Operation of a page fault, after those of enum disk_op */
#define OP_FAULT 16

static int on_requests(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), disk);
	struct disks *d = arg;
	const char *text;
	u32 len;

	ROWS_EACH(v, rows) {
		struct request_key key = { (u32)view__get(&v, "pid"), disk ? (u32)view__get(&v, "op") : OP_FAULT,
					   (u64)view__get(&v, "dev"), (u64)view__get(&v, "ino") };
		struct requests *r;

		/* leaves out requests of kernel threads, and requests without an end, whose duration is not known */
		if ((disk && view__get(&v, "asker")) || view__get(&v, "flags") & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN))
			continue;
		r = map__get(&d->requests, &key);
		if (!r)
			return -ENOMEM;
		r->n++;
		r->ns += query__inside(d->q, (u64)view__get(&v, "start"), (u64)view__get(&v, "time"));
		if (!disk)
			continue;
		text = view__text(&v, disk, &len);
		snprintf(r->disk, sizeof(r->disk), "%.*s", (int)len, text);
	}
	return 0;
}

static int on_names(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), path);
	struct disks *d = arg;
	const char *text;
	u32 len;

	ROWS_EACH(v, rows) {
		struct file_key key = { (u64)view__get(&v, "dev"), (u64)view__get(&v, "ino") };
		struct file_name *name = map__find(&d->names, &key);

		if (!name)
			continue;
		text = view__text(&v, path, &len);
		snprintf(name->text, sizeof(name->text), "%.*s", (int)len, text);
	}
	return 0;
}

/* Reads the names of files with requests, and finds the requests of each process with most time. */
static int sum_up(struct disks *d)
{
	struct query all = *d->q;

	for (u32 i = 0; i < d->requests.n; i++) {
		const struct request_key *key = map__key(&d->requests, i);
		const struct requests *r = map__value(&d->requests, i);
		struct file_key file = { key->dev, key->ino };
		u32 *most = map__get(&d->largest, &key->pid);

		if (!most || !map__get(&d->names, &file))
			return -ENOMEM;
		if (!*most || r->ns > ((const struct requests *)map__value(&d->requests, *most - 1))->ns)
			*most = i + 1;
	}
	all.from = all.to = 0;
	all.pids.n = all.tids.n = 0;
	return d->requests.n ? query__read_kind(&all, "disk_file", on_names, d) : 0;
}

/* Writes "212 reads of /srv/data (sda), 1.3 ms each". */
static void describe(const struct disks *d, struct finding *f)
{
	static const char *const ops[][2] = {
		{ "read", "reads" },
		{ "write", "writes" },
		{ "flush", "flushes" },
		{ "discard", "discards" },
		{ "write of zeroes", "writes of zeroes" },
		{ "command", "commands" },
		{ "page fault", "page faults" },
	};
	const u32 *most = map__find(&d->largest, &f->pid);
	const struct request_key *key = most ? map__key(&d->requests, *most - 1) : NULL;
	const struct requests *r = most ? map__value(&d->requests, *most - 1) : NULL;
	u32 op;
	char text[224];
	const char *name;

	/* the process made no request itself */
	if (!key) {
		snprintf(f->report, sizeof(f->report), "osrt");
		return;
	}
	name = ((const struct file_name *)map__find(&d->names, &(struct file_key){ key->dev, key->ino }))->text;
	/* replaces "disk" or "page fault" by the requests */
	if (!strcmp(f->call, "disk") || !strncmp(f->call, "page fault", 10))
		*f->call = '\0';
	/* the requests are summed over the whole process, so their file may not be that of the call */
	if (*f->call && *f->object && strcmp(f->object, name) != 0)
		return;
	if (!*f->call && *name)
		snprintf(f->object, sizeof(f->object), "%s", name);
	op = key->op == OP_FAULT ? 6 : key->op < 5 ? key->op : 5;
	snprintf(text, sizeof(text), "%s %s%s%.100s%s%s%s, %s%s", TEXT_COUNT(r->n), ops[op][r->n != 1],
		 *name ? " of " : "", name, *r->disk ? " (" : "", r->disk, *r->disk ? ")" : "", TEXT_NS(r->ns / r->n),
		 r->n == 1 ? "" : " each");
	finding__add_detail(f, text);
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	struct group_most file = group__most(in, g, GROUP_OBJECT);
	struct disks *d = arg;
	const struct osrt_file *known;

	snprintf(f->report, sizeof(f->report), "disk");
	if (text__has_item("page fault|read|readv|pread64|preadv|preadv2", '|', f->call) && memory_limit__add(in, f))
		f->words = "pages of files that the memory limit of its cgroup evicts";
	known = file.value ? osrt_files__find(in->files, f->pid, (u32)file.value) : NULL;
	if (known)
		snprintf(f->object, sizeof(f->object), "%s", osrt_files__name(in->files, known->number));
	describe(d, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct disks d = { .q = in->q };
	int err;

	map__init(&d.requests, sizeof(struct request_key), sizeof(struct requests));
	map__init(&d.names, sizeof(struct file_key), sizeof(struct file_name));
	map__init(&d.largest, sizeof(u32), sizeof(u32));
	err = query__read_kind(in->q, "disk_io", on_requests, &d);
	if (!err)
		err = query__read_kind(in->q, "disk_fault", on_requests, &d);
	if (!err)
		err = sum_up(&d);
	if (!err)
		err = groups__each_finding(in, FINDING_DISK, out, complete, &d);
	MAPS_FREE(&d.requests, &d.names, &d.largest);
	return err;
}

FINDINGS(disk) = { .name = "disk", .find = find };
