// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads and counts NCCL calls: which communicator each belongs to, and what became of it. */
#include "model/nccl_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/compare.h"

#define IN_PROGRESS 7 /* ncclInProgress: of a nonblocking communicator, no failure */

const char *nccl_calls__function_name(const struct nccl_calls *a, u32 function)
{
	const char *name = function < 0x10000 ? names__probe(a->names, (u16)function) : NULL;
	const struct schema_event *e = name ? NULL : schema__event_by_id(a->schema, (u16)function);

	return name ? name : e ? e->name : "?";
}

/* Returns the number of a function: that of its first probe, as merged traces have several probes for one. */
static int function_of(struct nccl_calls *a, const struct schema_event *e, u16 probe, u32 *out)
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
			if (!strcmp(nccl_calls__function_name(a, other), nccl_calls__function_name(a, raw)))
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

/* Is d a later description of communicator r, with device and hash? */
static bool same_rank(const struct nccl_rank *r, const struct nccl_rank *d)
{
	return r->rank == d->rank && r->size == d->size && (!r->hash || !d->hash || r->hash == d->hash);
}

static int on_description(struct nccl_calls *a, const struct view *v)
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
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = on_description(arg, &v);
	return err;
}

COMPARE_BY(by_since, struct nccl_rank, ASCENDING(since))

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

/* Reads the whole trace, as a communicator may have been described before the selected time. */
static int read_communicators(struct nccl_calls *a, const struct query *args)
{
	u32 i;
	int err = trace__read_kind(args->trace, "nccl_communicator", on_descriptions, a);

	for (i = 0; !err && i < a->comms.n; i++)
		join_ranks(map__value(&a->comms, i));
	return err;
}

/* Returns what the communicator of a call was when the call ended. */
static struct nccl_rank *rank_of(struct nccl_calls *a, u32 pid, u64 comm, u64 time)
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

/* Of the functions that create communicators, each has one of these in its name. */
static bool is_creating(const char *function)
{
	return strstr(function, "Init") || strstr(function, "Split") || strstr(function, "Shrink") ||
	       strstr(function, "Grow");
}

/* The call at `time` has created it: its description followed. */
static void mark_new(struct nccl_calls *a, u32 pid, u64 comm, u64 time)
{
	struct nccl_handle key = { .comm = comm, .pid = pid };
	struct nccl_handles *h = map__find(&a->comms, &key);

	for (u32 i = 0; h && i < h->n; i++) {
		if (h->list[i].since < time)
			continue;
		h->list[i].is_new = true;
		return;
	}
}

struct call_fields {
	struct common_fields common;
	const struct schema_field *bytes, *comm;
	bool transfer; /* it is a collective or point to point */
	bool is_collective;
};

/* A call to be counted. */
struct seen {
	u32 pid, tid, function;
	u16 flags;
	u64 start, time, ns, bytes, comm;
	s32 ret;
	bool returned, failed, is_collective;
};

/* Stores a call from which what the ranks did can be joined. */
static int list_call(struct nccl_calls *a, const struct seen *c, const struct nccl_rank *rank)
{
	const char *name = nccl_calls__function_name(a, c->function);
	bool is_open = c->flags & EVENT_OPEN, is_end = !strcmp(name, "ncclGroupEnd");

	if (rank && !c->failed)
		return array__push(a->ops, a->n_ops,
				   (struct nccl_op){
					   .start = c->start,
					   .end = c->time,
					   .bytes = c->bytes,
					   .comm = c->comm,
					   .rank = rank,
					   .pid = c->pid,
					   .tid = c->tid,
					   .function = c->function,
					   .is_collective = c->is_collective,
					   .is_open = is_open,
				   }) ?
			       0 :
			       -ENOMEM;
	if (!is_end && strcmp(name, "ncclGroupStart"))
		return 0;
	return array__push(
		       a->marks, a->n_marks,
		       (struct nccl_mark){
			       .start = c->start, .end = c->time, .pid = c->pid, .tid = c->tid, .is_end = is_end }) ?
		       0 :
		       -ENOMEM;
}

static int count_rank(struct nccl_calls *a, const struct seen *c, struct nccl_rank **out)
{
	struct nccl_rank *r;

	/* ncclBcast calls ncclBroadcast: count it under the name that the program used */
	if (!c->comm || !strcmp(nccl_calls__function_name(a, c->function), "ncclBcast"))
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

static int count_failure(struct nccl_calls *a, const struct seen *c)
{
	struct nccl_failure_key key = { c->pid, c->tid, c->function, c->ret };
	u64 *n = map__get(&a->failures, &key);

	if (!n)
		return -ENOMEM;
	++*n;
	a->errors++;
	return 0;
}

static int add_open(struct nccl_calls *a, const struct seen *c, const struct nccl_rank *r)
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

static int count_call(struct nccl_calls *a, const struct seen *c, bool transfer)
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
	if (!err)
		err = list_call(a, c, transfer ? r : NULL);
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

static int inspect_call(struct nccl_calls *a, const struct view *v, const struct call_fields *f, struct seen *c)
{
	*c = (struct seen){
		.pid = (u32)view__s64(v, f->common.pid),
		.tid = (u32)view__s64(v, f->common.tid),
		.flags = (u16)view__s64(v, f->common.flags),
		.start = (u64)view__s64(v, f->common.start),
		.is_collective = f->is_collective,
		.time = (u64)view__s64(v, f->common.time),
		.bytes = f->transfer ? (u64)view__s64(v, f->bytes) : 0,
		.comm = (u64)view__s64(v, f->comm),
		.ret = (s32)view__s64(v, f->common.ret),
	};

	c->ns = c->time - c->start;
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
	f.is_collective = !strcmp(v.event->name, "nccl_collective");
	f.transfer = f.is_collective || !strcmp(v.event->name, "nccl_p2p");
	for (; !err && v.i < rows__count(rows); v.i++) {
		err = inspect_call(arg, &v, &f, &c);
		if (!err)
			err = count_call(arg, &c, f.transfer);
	}
	return err;
}

static int read_calls(struct nccl_calls *a, const struct query *args)
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

/* Reads the whole trace, as read_communicators. */
static int on_comm_calls(const struct rows *rows, void *arg)
{
	struct nccl_calls *a = arg;

	ROWS_EACH(v, rows) {
		const char *name = names__probe(a->names, (u16)view__get(&v, "probe"));

		if (name && is_creating(name))
			mark_new(a, (u32)view__get(&v, "pid"), (u64)view__get(&v, "comm"), (u64)view__get(&v, "start"));
	}
	return 0;
}

COMPARE_BY(by_thread, struct nccl_op, ASCENDING(pid), ASCENDING(tid), ASCENDING(start), DESCENDING(end))
COMPARE_BY(mark_by_thread, struct nccl_mark, ASCENDING(pid), ASCENDING(tid), ASCENDING(start), DESCENDING(end))

int nccl_calls__read(struct nccl_calls *a, const struct query *args)
{
	int err;

	*a = (struct nccl_calls){ .schema = trace__schema(args->trace), .names = args->names };
	map__init(&a->probes, sizeof(u32), sizeof(u32));
	map__init(&a->functions, sizeof(u32), sizeof(struct nccl_function));
	map__init(&a->comms, sizeof(struct nccl_handle), sizeof(struct nccl_handles));
	map__init(&a->failures, sizeof(struct nccl_failure_key), sizeof(u64));
	err = read_communicators(a, args);
	if (!err)
		err = trace__read_kind(args->trace, "nccl_comm", on_comm_calls, a);
	if (!err)
		err = read_calls(a, args);
	if (a->n_ops)
		qsort(a->ops, a->n_ops, sizeof(*a->ops), by_thread);
	if (a->n_marks)
		qsort(a->marks, a->n_marks, sizeof(*a->marks), mark_by_thread);
	return err;
}

void nccl_calls__free(struct nccl_calls *a)
{
	u32 i;

	for (i = 0; i < a->functions.n; i++)
		stats__free(&((struct nccl_function *)map__value(&a->functions, i))->time, &a->pool);
	for (i = 0; i < a->comms.n; i++)
		free(((struct nccl_handles *)map__value(&a->comms, i))->list);
	MAPS_FREE(&a->probes, &a->functions, &a->comms, &a->failures);
	free(a->open);
	free(a->ops);
	free(a->marks);
}

/* As in nccl.h of NCCL 2.32 */
const char *nccl_calls__result_name(s32 ret)
{
	static const char *const known[] = {
		"ncclSuccess",	     "ncclUnhandledCudaError", "ncclSystemError",
		"ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
		"ncclRemoteError",   "ncclInProgress",	       "ncclTimeout",
	};

	return ret >= 0 && (size_t)ret < ARRAY_LEN(known) ? known[ret] : NULL;
}
