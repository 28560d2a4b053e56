// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* NCCL's calls by function and by communicator, failures, and calls that had not returned. */
#include "report/nccl_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"
#include "util/array.h"

#define IN_PROGRESS 7 /* of a communicator that does not block: no failure */

/* ncclResult_t, nccl.h of NCCL 2.32 */
static const char *result_name(s32 ret)
{
	static const char *const known[] = {
		"ncclSuccess",	     "ncclUnhandledCudaError", "ncclSystemError",
		"ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
		"ncclRemoteError",   "ncclInProgress",	       "ncclTimeout",
	};

	return ret >= 0 && (size_t)ret < ARRAY_LEN(known) ? known[ret] : NULL;
}

static const char *function_name(const struct nccl_api *a, u32 function)
{
	const char *name = function < 0x10000 ? names__probe(a->names, (u16)function) : NULL;
	const struct schema_event *e = name ? NULL : schema__event_by_id(a->schema, (u16)function);

	return name ? name : e ? e->name : "?";
}

/*
 * The number that identifies a function: its first probe's. In a trace merged from several machines a function has
 * more than one.
 */
static int function_of(struct nccl_api *a, const struct schema_event *e, u16 probe, u32 *out)
{
	u32 raw = names__probe(a->names, probe) ? probe : 0x10000u | e->id, i, other, *known;

	known = map__find(&a->probes, &raw);
	if (!known) {
		known = map__get(&a->probes, &raw);
		if (!known)
			return -ENOMEM;
		*known = raw;
		for (i = 0; i + 1 < a->probes.n && *known == raw; i++) {
			other = *(const u32 *)map__value(&a->probes, i);
			if (!strcmp(function_name(a, other), function_name(a, raw)))
				*known = other;
		}
	}
	*out = *known;
	return 0;
}

static struct nccl_rank *add_rank(struct nccl_handles *h)
{
	if (!array__room(h->list, h->n))
		return NULL;
	h->list[h->n] = (struct nccl_rank){ .device = -1 };
	return &h->list[h->n++];
}

/* Is d a later description of the communicator r, with device and hash? */
static bool same_rank(const struct nccl_rank *r, const struct nccl_rank *d)
{
	return r->rank == d->rank && r->size == d->size && (!r->hash || !d->hash || r->hash == d->hash);
}

static int on_description(struct nccl_api *a, const struct view *v)
{
	struct nccl_handle key = { .comm = (u64)view__get(v, "comm"), .pid = (u32)view__get(v, "pid") };
	struct nccl_handles *h = map__get(&a->comms, &key);
	struct nccl_rank *r = h ? add_rank(h) : NULL;

	if (!r)
		return -ENOMEM;
	r->since = (u64)view__get(v, "time");
	r->hash = (u64)view__get(v, "hash");
	r->rank = (s32)view__get(v, "rank");
	r->size = (s32)view__get(v, "size");
	r->device = (s32)view__get(v, "device");
	return 0;
}

static int on_descriptions(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	int err = 0;

	for (; !err && v.i < rows__count(rows); v.i++)
		err = on_description(arg, &v);
	return err;
}

static int by_since(const void *a, const void *b)
{
	const struct nccl_rank *x = a, *y = b;

	return x->since < y->since ? -1 : x->since > y->since;
}

static void join_ranks(struct nccl_handles *h)
{
	struct nccl_rank *last;
	u32 i, n = 1;

	qsort(h->list, h->n, sizeof(*h->list), by_since);
	for (i = 1; i < h->n; i++) {
		last = &h->list[n - 1];
		if (!same_rank(last, &h->list[i])) {
			h->list[n++] = h->list[i];
			continue;
		}
		last->hash = last->hash ? last->hash : h->list[i].hash;
		last->device = last->device >= 0 ? last->device : h->list[i].device;
	}
	h->n = n;
}

/* Of the whole trace: a communicator may have been described long before the time asked for. */
static int read_communicators(struct nccl_api *a, const struct query *args)
{
	const struct schema_event *kinds[2] = { schema__event(a->schema, "nccl_communicator") };
	struct trace_filter filter = { .kinds = kinds };
	u32 i;
	int err = kinds[0] ? trace__read(args->trace, &filter, on_descriptions, a) : 0;

	for (i = 0; !err && i < a->comms.n; i++)
		join_ranks(map__value(&a->comms, i));
	return err;
}

/* What the communicator of a call was when the call ended. */
static struct nccl_rank *rank_of(struct nccl_api *a, u32 pid, u64 comm, u64 time)
{
	struct nccl_handle key = { .comm = comm, .pid = pid };
	struct nccl_handles *h = map__get(&a->comms, &key);
	u32 i;

	if (!h || (!h->n && !add_rank(h)))
		return NULL;
	for (i = h->n - 1; i && h->list[i].since > time; i--)
		;
	return &h->list[i];
}

struct call_fields {
	struct common_fields common;
	const struct schema_field *bytes, *comm;
	bool transfer; /* a collective or point to point */
};

/* One call as the counts below see it. */
struct seen {
	u32 pid, tid, function;
	u16 flags;
	u64 time, ns, bytes, comm;
	s32 ret;
	bool returned, failed;
};

static int count_rank(struct nccl_api *a, const struct seen *c, struct nccl_rank **out)
{
	struct nccl_rank *r;

	/* ncclBcast calls ncclBroadcast: count it under the name that the program used */
	if (!c->comm || !strcmp(function_name(a, c->function), "ncclBcast"))
		return 0;
	*out = r = rank_of(a, c->pid, c->comm, c->time);
	if (!r)
		return -ENOMEM;
	r->calls++;
	r->bytes += c->failed ? 0 : c->bytes;
	r->errors += c->failed;
	r->open += !!(c->flags & EVENT_OPEN);
	r->ns += c->returned ? c->ns : 0;
	return 0;
}

static int count_failure(struct nccl_api *a, const struct seen *c)
{
	struct nccl_failure_key key = { c->pid, c->tid, c->function, c->ret };
	u64 *n = map__get(&a->failures, &key);

	if (!n)
		return -ENOMEM;
	++*n;
	a->errors++;
	return 0;
}

static int add_open(struct nccl_api *a, const struct seen *c, const struct nccl_rank *r)
{
	if (!array__push(a->open, a->n_open,
			 (struct nccl_open){
				 .pid = c->pid,
				 .tid = c->tid,
				 .function = c->function,
				 .comm = c->comm,
				 .rank = r ? r->rank : 0,
				 .size = r ? r->size : 0,
				 .ns = c->ns,
			 }))
		return -ENOMEM;
	return 0;
}

static int count_call(struct nccl_api *a, const struct seen *c, bool transfer)
{
	struct nccl_function *f = map__get(&a->functions, &c->function);
	struct nccl_rank *r = NULL;
	int err = f ? 0 : -ENOMEM;

	if (!err && transfer)
		err = count_rank(a, c, &r);
	else if (!err && c->comm && (c->flags & EVENT_OPEN))
		r = rank_of(a, c->pid, c->comm, c->time);
	if (!err && c->failed)
		err = count_failure(a, c);
	if (!err && (c->flags & EVENT_OPEN))
		err = add_open(a, c, r);
	if (err)
		return err;
	a->calls++;
	f->bytes += c->failed ? 0 : c->bytes;
	f->errors += c->failed;
	f->open += !!(c->flags & EVENT_OPEN);
	f->untimed += !c->returned;
	if (!c->returned)
		return 0;
	a->total += c->ns;
	return stats__add(&f->time, &a->pool, c->ns);
}

static int look(struct nccl_api *a, const struct view *v, const struct call_fields *f, struct seen *c)
{
	*c = (struct seen){
		.pid = (u32)view__s64(v, f->common.pid),
		.tid = (u32)view__s64(v, f->common.tid),
		.flags = (u16)view__s64(v, f->common.flags),
		.time = (u64)view__s64(v, f->common.time),
		.bytes = f->transfer ? (u64)view__s64(v, f->bytes) : 0,
		.comm = (u64)view__s64(v, f->comm),
		.ret = (s32)view__s64(v, f->common.ret),
	};

	c->ns = c->time - (u64)view__s64(v, f->common.start);
	c->returned = !(c->flags & (EVENT_OPEN | EVENT_RETURN_NOT_SEEN | EVENT_NO_DURATION));
	c->failed = c->returned && c->ret && c->ret != IN_PROGRESS;
	return function_of(a, v->event, (u16)view__s64(v, f->common.probe), &c->function);
}

static int on_calls(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct call_fields f = { .common = common_fields__of(v.event) };
	struct seen c;
	int err = 0;

	f.comm = schema_event__field(v.event, "comm");
	f.bytes = schema_event__field(v.event, "bytes");
	f.transfer = !strcmp(v.event->name, "nccl_collective") || !strcmp(v.event->name, "nccl_p2p");
	for (; !err && v.i < rows__count(rows); v.i++) {
		err = look(arg, &v, &f, &c);
		if (!err)
			err = count_call(arg, &c, f.transfer);
	}
	return err;
}

static int read_calls(struct nccl_api *a, const struct query *args)
{
	const struct schema_event **kinds = calloc(a->schema->n_events + 1, sizeof(*kinds));
	const struct schema_family *nccl = schema__family(a->schema, "nccl");
	u32 i, n = 0;
	int err = 0;

	if (!kinds)
		return -ENOMEM;
	for (i = 0; nccl && i < a->schema->n_events; i++) {
		if (a->schema->events[i].is_call && EVENT_FAMILY(a->schema->events[i].id) == nccl->id)
			kinds[n++] = &a->schema->events[i];
	}
	if (n)
		err = query__read(args, kinds, on_calls, a);
	free(kinds);
	return err;
}

int nccl_api__read(struct nccl_api *a, const struct query *args)
{
	int err;

	*a = (struct nccl_api){ .schema = trace__schema(args->trace), .names = args->names };
	map__init(&a->probes, sizeof(u32), sizeof(u32));
	map__init(&a->functions, sizeof(u32), sizeof(struct nccl_function));
	map__init(&a->comms, sizeof(struct nccl_handle), sizeof(struct nccl_handles));
	map__init(&a->failures, sizeof(struct nccl_failure_key), sizeof(u64));
	err = read_communicators(a, args);
	return err ? err : read_calls(a, args);
}

void nccl_api__free(struct nccl_api *a)
{
	u32 i;

	for (i = 0; i < a->functions.n; i++)
		stats__free(&((struct nccl_function *)map__value(&a->functions, i))->time, &a->pool);
	for (i = 0; i < a->comms.n; i++)
		free(((struct nccl_handles *)map__value(&a->comms, i))->list);
	map__free(&a->probes);
	map__free(&a->functions);
	map__free(&a->comms);
	map__free(&a->failures);
	free(a->open);
}

static const struct column function_columns[] = {
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN },	 { "calls", "Calls", VALUE_U64, SHOW_COUNT },
	{ "errors", "Errors", VALUE_U64, SHOW_COUNT },	 { "open", "Open", VALUE_U64, SHOW_COUNT },
	{ "total_ns", "Total", VALUE_U64, SHOW_NS },	 { "avg_ns", "Avg", VALUE_DOUBLE, SHOW_NS },
	{ "median_ns", "Med", VALUE_DOUBLE, SHOW_NS },	 { "min_ns", "Min", VALUE_U64, SHOW_NS },
	{ "max_ns", "Max", VALUE_U64, SHOW_NS },	 { "bytes", "Bytes", VALUE_U64, SHOW_BYTES },
	{ "untimed", "Untimed", VALUE_U64, SHOW_NEVER },
};

static const struct column rank_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "process", "Process", VALUE_TEXT, SHOW_PLAIN },
	{ "comm", "Communicator", VALUE_U64, SHOW_HEX }, { "rank", "Rank", VALUE_S64, SHOW_PLAIN },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },	 { "device", "Device", VALUE_S64, SHOW_PLAIN },
	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },	 { "errors", "Errors", VALUE_U64, SHOW_COUNT },
	{ "open", "Open", VALUE_U64, SHOW_COUNT },	 { "total_ns", "Total", VALUE_U64, SHOW_NS },
	{ "bytes", "Bytes", VALUE_U64, SHOW_BYTES },	 { "hash", "Hash", VALUE_U64, SHOW_HEX },
};

static const struct column open_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	 { "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "thread", "Thread", VALUE_TEXT, SHOW_PLAIN },	 { "name", "Function", VALUE_TEXT, SHOW_PLAIN },
	{ "comm", "Communicator", VALUE_U64, SHOW_HEX }, { "rank", "Rank", VALUE_S64, SHOW_PLAIN },
	{ "size", "Ranks", VALUE_S64, SHOW_PLAIN },	 { "open_ns", "For", VALUE_U64, SHOW_NS },
};

static const struct column failure_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },	{ "tid", "TID", VALUE_U64, SHOW_PLAIN },
	{ "name", "Function", VALUE_TEXT, SHOW_PLAIN }, { "ret", "Returned", VALUE_S64, SHOW_PLAIN },
	{ "error", "Error", VALUE_TEXT, SHOW_PLAIN },	{ "calls", "Calls", VALUE_U64, SHOW_COUNT },
};

static void fill_functions(struct nccl_api *a, struct table *t)
{
	struct nccl_function *f;
	u32 i;

	for (i = 0; i < a->functions.n; i++) {
		f = map__value(&a->functions, i);
		table__add(t, V_TEXT(function_name(a, *(const u32 *)map__key(&a->functions, i))),
			   V_U64(f->time.count + f->untimed), V_U64(f->errors), V_U64(f->open), V_U64(f->time.total),
			   V_DBL(f->time.mean), V_DBL(stats__median(&f->time)), V_U64(f->time.min), V_U64(f->time.max),
			   f->bytes ? V_U64(f->bytes) : V_NONE, V_U64(f->untimed));
	}
	table__sort(t, "total_ns");
}

/* Returns how many were used and are not known. */
static u32 fill_ranks(struct nccl_api *a, struct table *t)
{
	const struct nccl_handle *k;
	const struct nccl_handles *h;
	const struct nccl_rank *r;
	u32 i, j, unknown = 0;

	for (i = 0; i < a->comms.n; i++) {
		k = map__key(&a->comms, i);
		h = map__value(&a->comms, i);
		for (j = 0; j < h->n; j++) {
			r = &h->list[j];
			if (!r->calls)
				continue;
			unknown += !r->size;
			table__add(t, V_U64(k->pid), V_TEXT(names__comm(a->names, k->pid, 0)), V_U64(k->comm),
				   r->size ? V_S64(r->rank) : V_NONE, r->size ? V_S64(r->size) : V_NONE,
				   r->device >= 0 ? V_S64(r->device) : V_NONE, V_U64(r->calls), V_U64(r->errors),
				   V_U64(r->open), V_U64(r->ns), V_U64(r->bytes), r->hash ? V_U64(r->hash) : V_NONE);
		}
	}
	table__sort(t, "bytes");
	return unknown;
}

static void fill_open(struct nccl_api *a, struct table *t)
{
	const struct nccl_open *o;

	for (o = a->open; o < a->open + a->n_open; o++)
		table__add(t, V_U64(o->pid), V_U64(o->tid), V_TEXT(names__comm(a->names, o->pid, o->tid)),
			   V_TEXT(function_name(a, o->function)), o->comm ? V_U64(o->comm) : V_NONE,
			   o->size ? V_S64(o->rank) : V_NONE, o->size ? V_S64(o->size) : V_NONE, V_U64(o->ns));
	table__sort(t, "open_ns");
}

static void fill_failures(struct nccl_api *a, struct table *t)
{
	const struct nccl_failure_key *k;
	u32 i;

	for (i = 0; i < a->failures.n; i++) {
		k = map__key(&a->failures, i);
		table__add(t, V_U64(k->pid), V_U64(k->tid), V_TEXT(function_name(a, k->function)), V_S64(k->ret),
			   V_TEXT(result_name(k->ret)), V_U64(*(u64 *)map__value(&a->failures, i)));
	}
	table__sort(t, "calls");
}

static u32 longest_function(const struct nccl_api *a, u64 *ns)
{
	u32 i, longest = 0;

	*ns = 0;
	for (i = 0; i < a->functions.n; i++) {
		const struct nccl_function *f = map__value(&a->functions, i);

		if (f->time.total < *ns || !f->time.count)
			continue;
		*ns = f->time.total;
		longest = *(const u32 *)map__key(&a->functions, i);
	}
	return longest;
}

static void add_failures_findings(struct nccl_api *a, struct report_output *out)
{
	const struct nccl_failure_key *k = NULL;
	char count[TEXT_NUMBER], who[64], number[16];
	u64 n, most = 0;
	u32 i;

	for (i = 0; i < a->failures.n; i++) {
		n = *(u64 *)map__value(&a->failures, i);
		if (n <= most)
			continue;
		most = n;
		k = map__key(&a->failures, i);
	}
	if (!k)
		return;
	snprintf(number, sizeof(number), "%d", k->ret);
	report_output__finding(out, "%s NCCL call%s failed; most often %s with %s in %s.",
			       text__count(count, sizeof(count), a->errors), a->errors == 1 ? "" : "s",
			       function_name(a, k->function), result_name(k->ret) ? result_name(k->ret) : number,
			       names__label(a->names, who, sizeof(who), k->pid, k->tid));
}

static void add_open_findings(struct nccl_api *a, struct report_output *out)
{
	char ns[TEXT_NUMBER], who[64], rank[48] = "";
	const struct nccl_open *o, *longest = a->open;

	if (!a->n_open)
		return;
	for (o = a->open; o < a->open + a->n_open; o++)
		longest = o->ns > longest->ns ? o : longest;
	if (longest->size)
		snprintf(rank, sizeof(rank), ", rank %d of %d,", longest->rank, longest->size);
	report_output__finding(out, "%u NCCL call%s had not returned at the end; the longest, %s of %s,%s for %s.",
			       a->n_open, a->n_open == 1 ? "" : "s", function_name(a, longest->function),
			       names__label(a->names, who, sizeof(who), longest->pid, longest->tid),
			       *rank ? rank + 1 : "", text__ns(ns, sizeof(ns), longest->ns));
}

void nccl_api__add_findings(struct nccl_api *a, struct report_output *out)
{
	char total[TEXT_NUMBER], count[TEXT_NUMBER];
	u64 ns;
	u32 longest = longest_function(a, &ns);

	if (!a->calls)
		return;
	if (ns)
		report_output__finding(out, "%s NCCL call%s took %s of their threads' time; %.1f%% of that in %s.",
				       text__count(count, sizeof(count), a->calls), a->calls == 1 ? "" : "s",
				       text__ns(total, sizeof(total), a->total), 100.0 * (double)ns / (double)a->total,
				       function_name(a, longest));
	else
		report_output__finding(out, "%s NCCL call%s.", text__count(count, sizeof(count), a->calls),
				       a->calls == 1 ? "" : "s");
	add_failures_findings(a, out);
	add_open_findings(a, out);
}

struct unread {
	const struct query *args;
	struct report_output *out;
	bool noted;
};

static int on_libraries(const struct rows *rows, void *arg)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct unread *u = arg;
	const char *why, *path;

	for (; v.i < rows__count(rows); v.i++) {
		why = names__string(u->args->names, (u32)view__get(&v, "why"));
		path = names__string(u->args->names, (u32)view__get(&v, "path"));
		if (!*why)
			continue;
		report_output__note(u->out, "Communicators of %s that are older than the trace are not described: %s.",
				    path, why);
		u->noted = true;
	}
	return 0;
}

static int note_unknown(const struct query *args, struct report_output *out, u32 n)
{
	const struct schema_event *kinds[2] = { schema__event(trace__schema(args->trace), "nccl_library") };
	struct trace_filter filter = { .kinds = kinds };
	struct unread u = { .args = args, .out = out };
	int err = n && kinds[0] ? trace__read(args->trace, &filter, on_libraries, &u) : 0;

	if (n && !u.noted)
		report_output__note(out, "%u communicator%s could not be read, and %s not described.", n,
				    n == 1 ? "" : "s", n == 1 ? "is" : "are");
	return err;
}

static int run(const struct query *args, struct report_output *out)
{
	struct table *functions, *ranks, *open, *failures;
	struct nccl_api a;
	u32 unknown;
	int err = nccl_api__read(&a, args);

	functions = REPORT_TABLE(out, "functions", "NCCL calls by function", function_columns);
	ranks = REPORT_TABLE(out, "communicators", "Collectives and point to point by communicator", rank_columns);
	open = REPORT_TABLE(out, "open", "Calls that had not returned at the end", open_columns);
	failures = REPORT_TABLE(out, "failures", "Calls that returned an error", failure_columns);
	ranks->limit = open->limit = failures->limit = 30;
	fill_functions(&a, functions);
	unknown = fill_ranks(&a, ranks);
	fill_open(&a, open);
	fill_failures(&a, failures);
	if (!a.calls)
		report__nothing(args, out, "No NCCL calls were recorded", "nccl");
	nccl_api__add_findings(&a, out);
	if (!err)
		err = note_unknown(args, out, unknown);
	if (a.pool.approximate)
		report_output__note(out, "Medians of groups beyond %u calls are within 0.4%%.", STATS_EXACT);
	nccl_api__free(&a);
	return err;
}

REPORT(nccl_api) = {
	.name = "nccl-api",
	.doc = "calls of NCCL: count, time, bytes and errors by function and communicator, and what hangs",
	.kinds = "nccl_collective,nccl_p2p,nccl_comm,nccl_query,nccl_memory,nccl_reduction,nccl_call,nccl_other",
	.run = run,
};
