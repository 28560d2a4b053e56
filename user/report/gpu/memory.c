// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report memory: GPU memory that is live, at its peak, and not freed, by process and device and by allocating code. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/memory_sums.h"
#include "model/stacks.h"
#include "model/texts.h"
#include "output/text.h"
#include "report/report.h"

/* A line of code or, without stacks, a thread. */
struct line_key {
	u32 sum, text;
};

struct memory_report {
	struct memory_sums sums;
	struct stacks *stacks;
	struct map texts; /* texts.h */
	struct map lines; /* struct line_key -> struct memory_site */
	const struct query *args;
};

static const char *where_name(u32 where)
{
	static const char *const names[] = { "device", "pinned", "managed", "other" };

	return names[where];
}

static const struct memory_key *key_of(const struct memory_report *r, u32 sum)
{
	return map__key(&r->sums.sums, sum);
}

/* Returns "GPU 0's memory" or "pinned memory of the host". */
static const char *what_of(const struct memory_key *k, char *buf, size_t size)
{
	if (k->where == MEMORY_PINNED)
		snprintf(buf, size, "pinned memory of the host");
	else if (k->device == GPU_NO_DEVICE)
		snprintf(buf, size, "GPU memory");
	else
		snprintf(buf, size, "GPU %u's %smemory", k->device, k->where == MEMORY_MANAGED ? "managed " : "");
	return buf;
}

static struct value device_value(const struct memory_key *k)
{
	return k->device == GPU_NO_DEVICE ? V_NONE : V_U64(k->device);
}

/* Returns the text of the user's line in a stack or of the thread; 0 without memory. */
static u32 line_of(struct memory_report *r, u32 pid, u32 stack, u32 tid)
{
	u32 top = stacks__top_user(r->stacks, stack);
	char label[STACK_LABEL], who[64];

	if (stacks__frame(r->stacks, top))
		stacks__label(r->stacks, top, label, sizeof(label));
	else if (tid)
		snprintf(label, sizeof(label), "thread %s", names__label(r->args->names, who, sizeof(who), pid, tid));
	else
		snprintf(label, sizeof(label), "code that is not known");
	return texts__number(&r->texts, label);
}

static int sum_lines(struct memory_report *r)
{
	MAP_EACH_ENTRY(const struct memory_site *p, const struct memory_site_key *k, &r->sums.sites) {
		struct line_key key = { k->sum, line_of(r, key_of(r, k->sum)->pid, k->stack, k->tid) };
		struct memory_site *line = key.text ? map__get(&r->lines, &key) : NULL;

		if (!line)
			return -ENOMEM;
		if (p->live_n)
			line->oldest = line->live_n && line->oldest < p->oldest ? line->oldest : p->oldest;
		line->peak += p->peak;
		line->peak_n += p->peak_n;
		line->live += p->live;
		line->live_n += p->live_n;
		line->bytes += p->bytes;
		line->allocations += p->allocations;
	}
	return 0;
}

/* Returns the end of the process, until which memory lives that was not freed. */
static u64 end_of(const struct memory_report *r, u32 pid)
{
	const struct task *task = names__task(r->args->names, pid, 0);
	u64 end = trace__summary(r->args->trace)->last;

	end = task && task->end && task->end < end ? task->end : end;
	return r->args->to && r->args->to < end ? r->args->to : end;
}

static u64 age_of(const struct memory_report *r, u32 pid, u64 time)
{
	u64 end = end_of(r, pid);

	return end > time ? end - time : 0;
}

static u64 device_memory(const struct memory_report *r, const struct memory_key *k)
{
	const struct gpu_device_facts *f =
		k->where == MEMORY_ON_DEVICE ? gpu_model__device(r->sums.model, k->pid, k->device) : NULL;

	return f ? f->memory : 0;
}

static const struct column device_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "where", "Memory", VALUE_TEXT, SHOW_PLAIN },
	{ "peak_bytes", "Peak", VALUE_U64, SHOW_BYTES },
	{ "peak_percent", "of the GPU's (%)", VALUE_DOUBLE, SHOW_PERCENT },
	{ "peak_ns", "Peak at (s)", VALUE_S64, SHOW_SECONDS },
	{ "live_bytes", "Live at the end", VALUE_U64, SHOW_BYTES },
	{ "live", "Blocks", VALUE_U64, SHOW_COUNT },
	{ "allocations", "Allocated", VALUE_U64, SHOW_COUNT },
	{ "releases", "Freed", VALUE_U64, SHOW_COUNT },
	{ "allocated_bytes", "In all", VALUE_U64, SHOW_BYTES },
	{ "largest_bytes", "Largest", VALUE_U64, SHOW_BYTES },
	{ "only_by_calls", "Known from calls alone", VALUE_U64, SHOW_NEVER },
};

static void fill_devices(const struct memory_report *r, struct table *t)
{
	for (u32 i = 0; i < r->sums.sums.n; i++) {
		const struct memory_key *k = key_of(r, i);
		const struct memory_sum *s = map__value(&r->sums.sums, i);
		u64 all = device_memory(r, k);

		table__add(t, V_U64(k->pid), V_TEXT(NAMES_TITLE(r->args->names, k->pid, 0)), device_value(k),
			   V_TEXT(where_name(k->where)), V_U64(s->peak),
			   all ? V_DBL(table__percent(s->peak, all)) : V_NONE, report__moment(r->args, s->peak_time),
			   V_U64(s->live), V_U64(s->live_n), V_U64(s->allocations), V_U64(s->releases), V_U64(s->bytes),
			   V_U64(s->largest), V_U64(s->host_time));
	}
	table__sort(t, "peak_bytes");
}

#define PLACE_COLUMNS                                                                                                  \
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN }, { "device", "GPU", VALUE_U64, SHOW_PLAIN },                           \
		{ "where", "Memory", VALUE_TEXT, SHOW_PLAIN }, { "peak_bytes", "At the peak", VALUE_U64, SHOW_BYTES }, \
		{ "peak_percent", "of it (%)", VALUE_DOUBLE, SHOW_PERCENT },                                           \
		{ "live_bytes", "Live at the end", VALUE_U64, SHOW_BYTES },                                            \
		{ "live", "Blocks", VALUE_U64, SHOW_COUNT }, { "allocations", "Allocated", VALUE_U64, SHOW_COUNT },    \
		{ "allocated_bytes", "In all", VALUE_U64, SHOW_BYTES },                                                \
	{                                                                                                              \
		"oldest_ns", "Oldest", VALUE_U64, SHOW_NS                                                              \
	}

static const struct column line_columns[] = { PLACE_COLUMNS, { "line", "Allocated by", VALUE_TEXT, SHOW_PLAIN } };
static const struct column stack_columns[] = { PLACE_COLUMNS, { "stack", "Stack", VALUE_TEXT, SHOW_PLAIN } };

static void add_place(const struct memory_report *r, struct table *t, u32 sum, const struct memory_site *p,
		      const char *text)
{
	const struct memory_key *k = key_of(r, sum);
	const struct memory_sum *s = map__value(&r->sums.sums, sum);

	table__add(t, V_U64(k->pid), device_value(k), V_TEXT(where_name(k->where)), V_U64(p->peak),
		   V_DBL(table__percent(p->peak, s->peak)), V_U64(p->live), V_U64(p->live_n), V_U64(p->allocations),
		   V_U64(p->bytes), p->live_n ? V_U64(age_of(r, k->pid, p->oldest)) : V_NONE, V_TEXT(text));
}

static void fill_places(const struct memory_report *r, struct table *lines, struct table *stacks)
{
	char folded[4096];

	for (u32 i = 0; i < r->lines.n; i++) {
		const struct line_key *k = map__key(&r->lines, i);

		add_place(r, lines, k->sum, map__value(&r->lines, i), texts__text(&r->texts, k->text));
	}
	for (u32 i = 0; i < r->sums.sites.n; i++) {
		const struct memory_site_key *k = map__key(&r->sums.sites, i);

		folded[0] = '\0';
		if (k->stack)
			stacks__folded(r->stacks, k->stack, folded, sizeof(folded));
		add_place(r, stacks, k->sum, map__value(&r->sums.sites, i), *folded ? folded : NULL);
	}
	table__sort(lines, "live_bytes");
	table__sort(lines, "peak_bytes");
	table__sort(stacks, "peak_bytes");
}

static const struct column live_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "where", "Memory", VALUE_TEXT, SHOW_PLAIN },
	{ "address", "Address", VALUE_U64, SHOW_HEX },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "age_ns", "Age", VALUE_U64, SHOW_NS },
	{ "line", "Allocated by", VALUE_TEXT, SHOW_PLAIN },
};

static void fill_live(struct memory_report *r, struct table *t)
{
	MAP_EACH_ENTRY(const struct memory_block *b, const struct memory_block_key *k, &r->sums.blocks) {
		const struct memory_key *sum = key_of(r, b->sum);

		if (b->live)
			table__add(t, V_U64(k->pid), device_value(sum), V_TEXT(where_name(sum->where)),
				   V_U64(k->address), V_U64(b->bytes), V_U64(age_of(r, k->pid, b->time)),
				   V_TEXT(texts__text(&r->texts, line_of(r, k->pid, b->stack, b->tid))));
	}
	table__sort(t, "bytes");
}

static const struct column pool_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	   { "device", "GPU", VALUE_U64, SHOW_PLAIN },
	{ "pool", "Pool", VALUE_U64, SHOW_HEX },	   { "size_bytes", "Largest size", VALUE_U64, SHOW_BYTES },
	{ "used_bytes", "In use", VALUE_U64, SHOW_BYTES },
};

static void fill_pools(const struct memory_report *r, struct report_output *out)
{
	struct table *t = REPORT_TABLE(out, "pools", "Pools of cudaMallocAsync, at their largest", pool_columns);

	MAP_EACH_ENTRY(const struct memory_pool *p, const struct memory_pool_key *k, &r->sums.pools)
		table__add(t, V_U64(k->pid), k->device == GPU_NO_DEVICE ? V_NONE : V_U64(k->device), V_U64(k->pool),
			   V_U64(p->size), V_U64(p->used));
	table__sort(t, "size_bytes");
}

/* Returns the line with most of a sum's bytes, at its peak or at the end; NULL: none. */
static const char *worst_line(const struct memory_report *r, u32 sum, bool at_end, u64 *bytes)
{
	const char *worst = NULL;

	*bytes = 0;
	MAP_EACH_ENTRY(const struct memory_site *p, const struct line_key *k, &r->lines) {
		u64 n = at_end ? p->live : p->peak;

		if (k->sum != sum || n <= *bytes)
			continue;
		*bytes = n;
		worst = texts__text(&r->texts, k->text);
	}
	return worst;
}

static void add_sum_findings(const struct memory_report *r, struct report_output *out, u32 i)
{
	const struct memory_key *k = key_of(r, i);
	const struct memory_sum *s = map__value(&r->sums.sums, i);
	char who[64], what[64], share[64] = "";
	u64 all = device_memory(r, k), most;
	const char *line = worst_line(r, i, false, &most);

	if (all)
		snprintf(share, sizeof(share), " (%.1f%%)", table__percent(s->peak, all));
	names__label(r->args->names, who, sizeof(who), k->pid, 0);
	report_output__finding(
		out, "At its peak, %.3f s after the start, %s had %s of %s%s; %.0f%% of that was allocated by %s.",
		(double)(s64)(s->peak_time - r->args->start) / 1e9, who, TEXT_BYTES(s->peak),
		what_of(k, what, sizeof(what)), share, table__percent(most, s->peak),
		line ? line : "code that is not known");
	line = worst_line(r, i, true, &most);
	if (s->live_n)
		report_output__finding(
			out, "At the end %s in %s block%s had not been freed; %.0f%% of that was allocated by %s.",
			TEXT_BYTES(s->live), TEXT_COUNT(s->live_n), text__s(s->live_n), table__percent(most, s->live),
			line ? line : "code that is not known");
}

static void add_findings(const struct memory_report *r, struct report_output *out)
{
	u32 best = ~0u;
	u64 peak = 0;

	/* The finding is on the largest peak; the table has the others. */
	for (u32 i = 0; i < r->sums.sums.n; i++) {
		const struct memory_sum *s = map__value(&r->sums.sums, i);

		if (s->peak > peak) {
			peak = s->peak;
			best = i;
		}
	}
	if (best != ~0u)
		add_sum_findings(r, out, best);
	if (r->sums.failed)
		report_output__finding(out, "%s call%s for memory failed: `sonde report FILE cuda-api` has the errors.",
				       TEXT_COUNT(r->sums.failed), text__s(r->sums.failed));
}

static void say_limits(const struct memory_report *r, struct report_output *out)
{
	bool host = false, stacks = false;

	for (u32 i = 0; i < r->sums.sums.n; i++)
		host = host || ((const struct memory_sum *)map__value(&r->sums.sums, i))->host_time;
	for (u32 i = 0; i < r->sums.sites.n; i++)
		stacks = stacks || ((const struct memory_site_key *)map__key(&r->sums.sites, i))->stack;
	report_output__note(out, "Memory that was allocated before the trace is not in these figures.%s%s%s",
			    r->sums.unseen ? " Such blocks were freed in it: " : "",
			    r->sums.unseen ? TEXT_COUNT(r->sums.unseen) : "", r->sums.unseen ? "." : "");
	report_output__note(
		out, "An allocator on top of CUDA's is recorded by what it takes from CUDA: PyTorch's takes segments "
		     "with cudaMalloc and keeps them, so the tensors in them are not recorded.");
	if (host)
		report_output__note(
			out,
			"Of a process without sonde's CUPTI library only the calls are known, not the device on which they allocated.");
	if (!stacks)
		report_output__note(out, "For the lines of Python that allocated, record with --cuda=stacks.");
	if (r->sums.coverage.dropped || r->sums.coverage.dropped_bytes)
		report_output__note(out, "Records of sonde's CUPTI library were lost: these figures may be wrong.");
}

static void fill(struct memory_report *r, struct report_output *out)
{
	struct table *devices = REPORT_TABLE(out, "devices", "Memory by process and GPU", device_columns);
	struct table *lines = REPORT_TABLE(out, "lines", "Memory by the line that allocated it", line_columns);
	struct table *stacks = REPORT_MACHINE_TABLE(out, "stacks", "The same by whole stacks", stack_columns);
	struct table *live = REPORT_TABLE(out, "live", "Not freed at the end", live_columns);

	lines->limit = 20;
	live->limit = 15;
	fill_devices(r, devices);
	fill_places(r, lines, stacks);
	fill_live(r, live);
	fill_pools(r, out);
}

static int run(const struct query *args, struct report_output *out)
{
	struct memory_report r = { .args = args };
	int err;

	texts__init(&r.texts);
	map__init(&r.lines, sizeof(struct line_key), sizeof(struct memory_site));
	err = memory_sums__read(&r.sums, args);
	if (!err)
		err = stacks__load(&r.stacks, args->trace);
	if (!err)
		err = sum_lines(&r);
	if (!err) {
		if (!r.sums.sums.n)
			report__nothing(args, out, "No allocation of GPU memory was recorded", "gpu");
		add_findings(&r, out);
		fill(&r, out);
		if (r.sums.sums.n)
			say_limits(&r, out);
	}
	stacks__free(r.stacks);
	MAPS_FREE(&r.lines, &r.texts);
	memory_sums__free(&r.sums);
	return err;
}

REPORT(memory) = {
	.name = "memory",
	.doc = "memory of GPUs: live, at its peak and not freed, by process, device and line of code",
	.kinds = "gpu_memory",
	.run = run,
};
