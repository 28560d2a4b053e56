// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves records from the rings into the trace. Handling a record may take long: the function names of a native stack
 * are requested from a child, which may read the tables of a large library first. So that no ring overflows meanwhile,
 * drain__copy() is called while any answer is awaited.
 */
#include "record/drain/drain.h"

#include "core/shim.h"
#include "core/stack.h"
#include "record/drain/losses.h"
#include "record/drain/ring.h"
#include "record/parts.h"
#include "record/stacks/stacks.h"
#include "record/titles.h"
#include "sonde.skel.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPIED_BYTES_MAX (32u << 20) /* bytes of copied records above which no more are taken out of the rings */
#define KEPT_BYTES	 (1u << 20) /* larger buffers are freed when their records are handled */
#define COPY_EVERY_NS	 5000000
#define COPY_BATCH	 8 /* after so many handled records the rings are read again, if COPY_EVERY_NS have passed */
#define HANDLE_NS	 100000000 /* for one drain__rings(): the worker has other work, above all mapped libraries */
#define ALL_NS		 1000000000
/* For the records that are left when the recording ends; of the worker's CPU time, as a busy machine gives it little */
#define LAST_CPU_NS   10000000000
#define LAST_NS	      60000000000
#define UNFINISHED_NS 1000000000 /* for a record that a probe has begun and not ended */

void drain__append(struct session *s, const void *record, u32 size)
{
	u64 copy[RECORD_MAX / sizeof(u64)];
	const struct event *e = record;
	int err;

	if (size < sizeof(*e))
		return;
	if (e->id >= RAW_FIRST) {
		if (e->id >= RAW_FAMILIES)
			host__event(s, RAW_FAMILY(e->id), e,
				    size); /* not for the trace: host code turns it into events */
		else
			stack_records__record(s, record, size);
		return;
	}
	if (suspension__discards(s, e, size)) {
		/* the family's host code still gets the event, as it starts and stops its probes by such events */
		host__event(s, FAMILY_INDEX(e->id), e, size);
		return;
	}
	record = capture__cut(s, record, size, copy);
	if (!record) {
		host__event(s, FAMILY_INDEX(e->id), e, size);
		return;
	}
	e = record;
	err = trace_writer__append(s->writer, record, size);
	/* -EINVAL: a kind or size that the schema does not have; the writer counts such records as lost */
	if (err && err != -EINVAL && !s->write_error)
		s->write_error = err;
	if (s->args->print)
		s->args->print(s->embedded.schema, record, size, s->args->print_arg);
	s->drain.traced += EVENT_FAMILY(e->id) != 0;
	s->drain.recorded[FAMILY_INDEX(e->id)]++;
	s->drain.at_tracepoints += s->load.tracepoints_alone[FAMILY_INDEX(e->id)];
	if (e->id == ID_meta_member)
		filter__note(&s->filter, e, size);
	if (e->id == ID_syscall_peer && size >= sizeof(struct syscall_peer))
		titles__note_peer(s, record);
	host__event(s, FAMILY_INDEX(e->id), e, size);
}

/* Returns the bytes of a ring: 64 MiB for all CPUs together, with a lower and an upper limit for each ring. */
static u64 ring_size(u32 cpus)
{
	u64 size = 4 << 20;

	if (test_switch__is_set("small-ring"))
		return 2 * RECORD_MAX;
	while (size > (256 << 10) && size * cpus > (64 << 20))
		size /= 2;
	return size;
}

int drain__configure(struct session *s)
{
	u32 cpus = libbpf_num_possible_cpus();
	u64 mark;

	s->drain.ring_size = ring_size(cpus);
	mark = s->drain.ring_size / 8;
	return bpf_map__set_max_entries(s->embedded.skel->maps.rings, cpus)				     ?:
		       bpf_map__set_value_size(s->embedded.skel->maps.rings, RING_BYTES(s->drain.ring_size)) ?:
		       session__set_variable(s, "ring_size", &s->drain.ring_size, sizeof(u64))		     ?:
		       session__set_variable(s, "ring_mark", &mark, sizeof(mark));
}

int drain__open(struct session *s, char *err, size_t len)
{
	const struct bpf_map *rings = s->embedded.skel->maps.rings;
	int ret = rings__open(&s->drain.rings, bpf_map__fd(rings), bpf_map__fd(s->embedded.skel->maps.ring_bell),
			      bpf_map__max_entries(rings), s->drain.ring_size);

	if (ret)
		snprintf(err, len, "cannot map the rings: %s", strerror(-ret));
	return ret;
}

/* Counts a record that sonde itself loses as one of its family, a batch of the shim as many. */
static void count_dropped(const void *record, u64 size, struct dropped_records *of)
{
	const struct shim_raw *batch = record;
	const struct event *e = record;

	if (size < sizeof(*e))
		return;
	of += e->id >= RAW_FAMILIES ? RAW_FAMILY(e->id) : FAMILY_INDEX(e->id);
	of->first = of->n && of->first < e->time ? of->first : e->time;
	of->last = of->last > e->time ? of->last : e->time;
	of->n += size >= sizeof(*batch) && e->id == RAW_SECOND_OF(RAW_FAMILY(e->id)) ? batch->records : 1;
}

static void add_losses(struct session *s, struct dropped_records *of, enum loss_reason reason)
{
	for (u16 i = 0; i < FAMILY_MAX; i++) {
		if (of[i].n)
			losses__add(s, i, reason, of[i].n, of[i].first, of[i].last, 0);
		of[i] = (struct dropped_records){};
	}
}

/* Records are copied first: handling one may send a request, and the rings are read while its answer is awaited. */
static void copy_record(void *arg, void *record, u32 size)
{
	struct session *s = arg;
	struct drain *d = &s->drain;
	struct copied_records *k = &d->incoming;
	size_t room = sizeof(u64) + (size + 7) / 8 * 8, bigger = k->size ? k->size * 2 : KEPT_BYTES;
	char *bytes;

	if (k->used + room > k->size) {
		bytes = realloc(k->bytes, bigger);
		if (!bytes) {
			count_dropped(record, size, d->dropped);
			return;
		}
		k->bytes = bytes;
		k->size = bigger;
	}
	if (size >= sizeof(struct event))
		capture__note(s, record, size);
	*(u64 *)(k->bytes + k->used) = size;
	memcpy(k->bytes + k->used + sizeof(u64), record, size);
	k->used += room;
}

static size_t waiting_bytes(const struct drain *d)
{
	return d->incoming.used + d->current.used - d->current.handled;
}

void drain__copy_now(struct session *s)
{
	bool more = true;

	s->drain.next_copy = timing__now() + COPY_EVERY_NS;
	s->drain.has_more = true;
	while (more && waiting_bytes(&s->drain) < COPIED_BYTES_MAX)
		more = rings__read(s->drain.rings, copy_record, s);
}

void drain__copy(struct session *s)
{
	if (s->drain.rings && timing__now() >= s->drain.next_copy)
		drain__copy_now(s);
}

void drain__on_idle(void *session)
{
	drain__copy(session);
}

/* Takes the copied records as the current ones. A small buffer is used again. */
static void take_incoming(struct drain *d)
{
	struct copied_records old = d->current;

	if (old.size > KEPT_BYTES) {
		free(old.bytes);
		old = (struct copied_records){};
	}
	old.used = old.handled = 0;
	d->current = d->incoming;
	d->incoming = old;
}

static void *next_record(struct copied_records *k, u64 *size)
{
	char *at = k->bytes + k->handled;

	*size = *(u64 *)at;
	k->handled += sizeof(u64) + (*size + 7) / 8 * 8;
	return at + sizeof(u64);
}

/* Handles the current records until all are handled or the time is over. */
static void handle_current(struct session *s)
{
	struct copied_records *k = &s->drain.current;
	u64 end = timing__now() + HANDLE_NS, size;

	for (u32 n = 1; k->handled < k->used; n++) {
		void *record = next_record(k, &size);

		if (host__cut(s, record, size))
			drain__append(s, record, size);
		if (n % COPY_BATCH)
			continue;
		drain__copy(s);
		if (timing__now() > end)
			return;
	}
}

void drain__rings(struct session *s)
{
	struct drain *d = &s->drain;

	if (!d->rings)
		return;
	/* handling a record may drain the rings */
	if (d->is_handling) {
		drain__copy(s);
		return;
	}
	d->is_handling = true;
	d->has_more = waiting_bytes(d) < COPIED_BYTES_MAX && rings__read(d->rings, copy_record, s);
	if (d->current.handled == d->current.used)
		take_incoming(d);
	/* a capture range may end on one CPU after its ring was read, and before a record of another CPU */
	if (s->args->capture)
		drain__copy_now(s);
	handle_current(s);
	d->has_more |= waiting_bytes(d) > 0;
	d->n_complete += !d->has_more;
	d->is_handling = false;
	add_losses(s, d->dropped, LOSS_BUDGET);
}

bool drain__has_more(const struct drain *d)
{
	return d->has_more;
}

u64 session__drained(const struct session *s)
{
	return s->drain.n_complete;
}

void drain__all(struct session *s)
{
	u64 done = s->drain.n_complete, end = timing__now() + ALL_NS;

	while (s->drain.rings && !s->drain.is_handling && s->drain.n_complete == done && timing__now() < end)
		drain__rings(s);
}

/* Counts the copied records that are not handled as lost. */
static void lose_waiting(struct session *s, struct copied_records *k)
{
	struct dropped_records dropped[FAMILY_MAX] = {};
	u64 size;

	while (k->handled < k->used) {
		const void *record = next_record(k, &size);

		count_dropped(record, size, dropped);
	}
	add_losses(s, dropped, LOSS_LATE);
}

/* After all probes are detached, a program may still be writing its last record if its CPU was interrupted. */
void drain__last(struct session *s)
{
	u64 end = timing__now() + LAST_NS, cpu = timing__clock(CLOCK_PROCESS_CPUTIME_ID) + LAST_CPU_NS;

	do
		drain__all(s);
	while (waiting_bytes(&s->drain) && timing__now() < end && timing__clock(CLOCK_PROCESS_CPUTIME_ID) < cpu);
	end = timing__now() + UNFINISHED_NS;
	while (!waiting_bytes(&s->drain) && rings__pending(s->drain.rings) && timing__now() < end) {
		usleep(1000);
		drain__rings(s);
	}
	if (waiting_bytes(&s->drain)) {
		session__warn(s,
			      "too many records were left at the end; those that are not handled are counted as lost");
		lose_waiting(s, &s->drain.current);
		lose_waiting(s, &s->drain.incoming);
	} else if (rings__pending(s->drain.rings)) {
		session__warn(
			s,
			"a BPF program did not complete a record that it began: later records of its CPU are missing");
	}
}

void drain__forget(struct drain *d)
{
	rings__forget(d->rings);
	d->rings = NULL;
}

void drain__close(struct drain *d)
{
	rings__close(d->rings);
	free(d->incoming.bytes);
	free(d->current.bytes);
	*d = (struct drain){};
}
