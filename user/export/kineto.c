// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One process in the form of torch.profiler's traces (Kineto), which HTA and others read: chrome.c writes the events.
 * Times are on CLOCK_REALTIME, from a base that all traces of three months share, so that those of ranks fit together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "export/chrome.h"
#include "model/rank_processes.h"
#include "model/view.h"
#include "output/json_writer.h"
#include "output/text.h"
#include "util/array.h"

#define BASE_SECONDS 7889238ull /* of Kineto: three months */
#define NS	     1000000000ull
#define LISTED	     5 /* processes that a message names */

static int on_process(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), pid);

	for (u32 i = 0; i < rows__count(rows); i++) {
		u32 id = (u32)rows__u64(rows, pid, i);

		if (!map__get(arg, &id))
			return -ENOMEM;
	}
	return 0;
}

/* Chooses the only process with calls of PyTorch or work of a GPU. If there are others, lists them in e->why. */
static int find_only(struct export *e)
{
	const struct schema *schema = trace__schema(e->trace);
	const struct schema_event *kinds[] = { schema__event(schema, "torch_op"), schema__event(schema, "torch_range"),
					       schema__event(schema, "gpu_kernel"), NULL };
	const struct schema_event *present[ARRAY_LEN(kinds)] = { NULL };
	struct text_buffer why = { .buf = e->why, .size = sizeof(e->why) };
	struct map pids; /* u32 -> u8 */
	u32 n = 0;

	for (u32 i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i])
			present[n++] = kinds[i];
	map__init(&pids, sizeof(u32), sizeof(u8));
	if (n)
		trace__read(e->trace, &(struct trace_filter){ .kinds = present }, on_process, &pids);
	n = pids.n;
	if (n == 1)
		e->pid = *(const u32 *)map__key(&pids, 0);
	text__add(&why, "which process? -p PID or --rank N names it; -o DIR/ writes all ranks of distributed training");
	for (u32 i = 0; i < n && i < LISTED; i++)
		text__add(&why, "%s%u", i ? ", " : "; calls of PyTorch and work of GPUs are of ",
			  *(const u32 *)map__key(&pids, i));
	if (n > LISTED)
		text__add(&why, " and %u others", n - LISTED);
	map__free(&pids);
	return n == 1 ? 0 : -EINVAL;
}

static int check(struct export *e)
{
	char *end;
	unsigned long pid = e->choice ? strtoul(e->choice, &end, 10) : 0;

	if (pid && !*end && pid <= ~0u)
		e->pid = (u32)pid;
	else if (e->choice)
		e->pid = 0;
	if (!e->pid && find_only(e))
		return -EINVAL;
	e->pids = (struct trace_ids){ &e->pid, 1 };
	return 0;
}

static int on_presence(const struct rows *rows, void *arg)
{
	*(bool *)arg = rows__count(rows) > 0;
	return *(bool *)arg;
}

/* Has the process events of this kind? */
static bool has(struct export *e, const char *kind)
{
	const struct schema_event *kinds[] = { schema__event(trace__schema(e->trace), kind), NULL };
	const struct trace_filter filter = { .kinds = kinds, .pids = e->pids };
	bool found = false;

	if (kinds[0])
		trace__read(e->trace, &filter, on_presence, &found);
	return found;
}

/* What the process communicates by, as far as calls of it were recorded; NULL: not known */
static const char *find_backend(struct export *e)
{
	return has(e, "nccl_collective") || has(e, "nccl_p2p") || has(e, "nccl_comm") ? "nccl" : NULL;
}

/* HTA states no reason when it fails. */
static void note_missing_work(struct export *e)
{
	if (!has(e, "gpu_kernel") && !has(e, "gpu_memcpy") && !has(e, "gpu_memset") && !has(e, "gpu_graph"))
		snprintf(
			e->note, sizeof(e->note),
			"no work of a GPU was recorded in process %u: HTA's analyses need some, and fail with IndexError "
			"or ValueError; `sonde record --inject` records it",
			names__number(e->names, e->pid));
}

/* Tools find the rank by a pattern with a space behind the colon. */
static int put_rank(struct export *e, u32 pid)
{
	const char *backend = find_backend(e);
	struct rank_processes ranks;
	int err = rank_processes__list(&ranks, e->trace, e->names);

	for (u32 i = 0; !err && i < ranks.n; i++) {
		const struct rank_process *r = &ranks.list[i];

		if (r->task->id != pid)
			continue;
		fprintf(e->out, "\"distributedInfo\":{\"backend\":\"%s\",\"rank\": %u,\"world_size\": %u,",
			backend ?: "unknown", r->rank, r->world_size);
		fprintf(e->out, "\"rank_from\":\"%s\"},",
			r->is_guess ? "the order in which processes started" : "the environment");
	}
	free(ranks.list);
	return err;
}

struct devices {
	struct export *e;
	u32 n; /* written so far: device 0, 1, .. */
};

/* The member's name in Kineto's deviceProperties, and the field of gpu_device */
static const struct {
	const char *name, *field;
} properties[] = {
	{ "totalGlobalMem", "memory" },
	{ "computeMajor", "major" },
	{ "computeMinor", "minor" },
	{ "maxThreadsPerBlock", "threads_per_block" },
	{ "warpSize", "warp_size" },
	{ "sharedMemPerBlock", "shared_per_block" },
	{ "numSms", "multiprocessors" },
	{ "regsPerMultiprocessor", "registers_per_sm" },
	{ "sharedMemPerMultiprocessor", "shared_per_sm" },
};

/* Tools find a device by its position, so devices are written only while their numbers have no gap. */
static int on_devices(const struct rows *rows, void *arg)
{
	struct devices *d = arg;
	FILE *out = d->e->out;
	const char *model;
	u32 len;

	ROWS_EACH(v, rows) {
		if ((u32)view__get(&v, "device") != d->n)
			continue;
		model = view__text(&v, schema_event__field(v.event, "model"), &len);
		fprintf(out, "%s{\"id\":%u,\"name\":", d->n ? "," : "", d->n);
		json__print_text(out, model, strnlen(model, len));
		for (size_t i = 0; i < ARRAY_LEN(properties); i++)
			fprintf(out, ",\"%s\":%lld", properties[i].name, view__get(&v, properties[i].field));
		fprintf(out, ",\"maxThreadsPerMultiprocessor\":%lld}",
			view__get(&v, "warps_per_sm") * view__get(&v, "warp_size"));
		d->n++;
	}
	return 0;
}

static int put_devices(struct export *e)
{
	const struct schema_event *kinds[] = { schema__event(trace__schema(e->trace), "gpu_device"), NULL };
	const struct trace_filter filter = { .kinds = kinds, .pids = e->pids };
	struct devices d = { .e = e };
	int err;

	fputs("\"deviceProperties\":[", e->out);
	err = kinds[0] ? trace__read(e->trace, &filter, on_devices, &d) : 0;
	fputs("],", e->out);
	return err;
}

/* A number that is the same for each export of the process */
static void put_trace_id(struct export *e)
{
	const struct trace_head *head = e->facts->head;

	fprintf(e->out, "\"trace_id\":\"%016lX%016lX\",", XXH64(head->boot_id, strlen(head->boot_id), head->monotonic),
		XXH64(head->hostname, strlen(head->hostname), head->realtime + e->pid));
}

static int begin(struct export *e)
{
	const struct trace_head *head = e->facts->head;
	u64 base = head->realtime / NS / BASE_SECONDS * BASE_SECONDS * NS;
	const struct task *task = names__task(e->names, e->pid, e->pid);
	/* a trace without family proc names no process */
	const char *host = task ? names__host(e->names, task, head->hostname) : head->hostname;
	int err = chrome__open(e);

	if (!err)
		err = chrome__only_kineto(e, head->realtime - head->monotonic - base);
	if (err)
		return err;
	fputs("{\"schemaVersion\":1,", e->out);
	err = put_devices(e);
	put_trace_id(e);
	fprintf(e->out, "%s%s\"host_name\":", has(e, "torch_shape") ? "\"record_shapes\":1," : "",
		has(e, "torch_alloc") ? "\"profile_memory\":1," : "");
	json__print_text(e->out, host, strlen(host));
	putc(',', e->out);
	if (!err)
		err = put_rank(e, e->pid);
	note_missing_work(e);
	fprintf(e->out, "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%llu,\"traceEvents\":[", base);
	return err;
}

EXPORTER(kineto) = {
	.name = "kineto",
	.doc = "torch.profiler's JSON of one process (-p PID, --rank N), or with -o DIR/ of each rank of training",
	.one_process = true,
	.check = check,
	.begin = begin,
	.rows = chrome__rows,
	.end = chrome__end,
};
