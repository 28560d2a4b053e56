// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves records from the rings into the trace. Handling a record may take long: the function names of a native stack
 * are requested from a child, which may read the tables of a large library first. So that no ring overflows meanwhile,
 * drain__copy() is called while any answer is awaited.
 */
#include "record/internal.h"
#include "core/stack.h"
#include "sonde.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/timing.h"

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
	if (pause__discards(s, e, size)) {
		/* the family's host code still gets the event, as it starts and stops its probes by such events */
		host__event(s, FAMILY_INDEX(e->id), e, size);
		return;
	}
	err = trace_writer__append(s->writer, record, size);
	/* -EINVAL: a kind or size that the schema does not have; the writer counts such records as lost */
	if (err && err != -EINVAL && !s->write_error)
		s->write_error = err;
	if (s->args->print)
		s->args->print(s->schema, record, size, s->args->print_arg);
	s->counts.traced += EVENT_FAMILY(e->id) != 0;
	s->counts.recorded[FAMILY_INDEX(e->id)]++;
	s->counts.at_tracepoints += s->counts.tracepoints_alone[FAMILY_INDEX(e->id)];
	if (e->id == ID_meta_member)
		filter__note(s, e, size);
	host__event(s, FAMILY_INDEX(e->id), e, size);
}

int drain__open(struct session *s, char *err, size_t len)
{
	const struct bpf_map *rings = s->skel->maps.rings;
	int ret = rings__open(&s->drain.rings, bpf_map__fd(rings), bpf_map__fd(s->skel->maps.ring_bell),
			      bpf_map__max_entries(rings), s->drain.ring_size);

	if (ret)
		snprintf(err, len, "cannot map the rings: %s", strerror(-ret));
	return ret;
}

/* Counts a record that sonde itself loses as one of its family. */
static void count_dropped(const void *record, u64 size, struct dropped_records *of)
{
	const struct event *e = record;

	if (size < sizeof(*e))
		return;
	of += e->id >= RAW_FAMILIES ? RAW_FAMILY(e->id) : FAMILY_INDEX(e->id);
	of->first = of->n && of->first < e->time ? of->first : e->time;
	of->last = of->last > e->time ? of->last : e->time;
	of->n++;
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
	struct copied_records *k = &s->drain.incoming;
	size_t room = sizeof(u64) + (size + 7) / 8 * 8, bigger = k->size ? k->size * 2 : KEPT_BYTES;
	char *bytes;

	if (k->used + room > k->size) {
		bytes = realloc(k->bytes, bigger);
		if (!bytes) {
			count_dropped(record, size, s->drain.dropped);
			return;
		}
		k->bytes = bytes;
		k->size = bigger;
	}
	*(u64 *)(k->bytes + k->used) = size;
	memcpy(k->bytes + k->used + sizeof(u64), record, size);
	k->used += room;
}

static size_t waiting_bytes(const struct session *s)
{
	return s->drain.incoming.used + s->drain.current.used - s->drain.current.handled;
}

void drain__copy(struct session *s)
{
	u64 now = timing__now();
	bool more = true;

	if (!s->drain.rings || now < s->drain.next_copy)
		return;
	s->drain.next_copy = now + COPY_EVERY_NS;
	s->drain.has_more = true;
	while (more && waiting_bytes(s) < COPIED_BYTES_MAX)
		more = rings__read(s->drain.rings, copy_record, s);
}

/* Takes the copied records as the current ones. A small buffer is used again. */
static void take_incoming(struct session *s)
{
	struct copied_records old = s->drain.current;

	if (old.size > KEPT_BYTES) {
		free(old.bytes);
		old = (struct copied_records){};
	}
	old.used = old.handled = 0;
	s->drain.current = s->drain.incoming;
	s->drain.incoming = old;
}

/* Handles the current records until all are handled or the time is over. */
static void handle_current(struct session *s)
{
	struct copied_records *k = &s->drain.current;
	u64 end = timing__now() + HANDLE_NS;

	for (u32 n = 1; k->handled < k->used; n++) {
		char *at = k->bytes + k->handled;
		u64 size = *(u64 *)at;

		k->handled += sizeof(u64) + (size + 7) / 8 * 8;
		if (host__cut(s, at + sizeof(u64), size))
			drain__append(s, at + sizeof(u64), size);
		if (n % COPY_BATCH)
			continue;
		drain__copy(s);
		if (timing__now() > end)
			return;
	}
}

void drain__rings(struct session *s)
{
	if (!s->drain.rings)
		return;
	/* handling a record may drain the rings */
	if (s->drain.is_handling) {
		drain__copy(s);
		return;
	}
	s->drain.is_handling = true;
	s->drain.has_more = waiting_bytes(s) < COPIED_BYTES_MAX && rings__read(s->drain.rings, copy_record, s);
	if (s->drain.current.handled == s->drain.current.used)
		take_incoming(s);
	handle_current(s);
	s->drain.has_more |= waiting_bytes(s) > 0;
	s->drain.n_complete += !s->drain.has_more;
	s->drain.is_handling = false;
	add_losses(s, s->drain.dropped, LOSS_BUDGET);
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

	while (k->handled < k->used) {
		const char *at = k->bytes + k->handled;
		u64 size = *(const u64 *)at;

		count_dropped(at + sizeof(u64), size, dropped);
		k->handled += sizeof(u64) + (size + 7) / 8 * 8;
	}
	add_losses(s, dropped, LOSS_LATE);
}

/* After all probes are detached, a program may still be writing its last record if its CPU was interrupted. */
void drain__last(struct session *s)
{
	u64 end = timing__now() + LAST_NS, cpu = timing__clock(CLOCK_PROCESS_CPUTIME_ID) + LAST_CPU_NS;

	do
		drain__all(s);
	while (waiting_bytes(s) && timing__now() < end && timing__clock(CLOCK_PROCESS_CPUTIME_ID) < cpu);
	end = timing__now() + UNFINISHED_NS;
	while (!waiting_bytes(s) && rings__pending(s->drain.rings) && timing__now() < end) {
		usleep(1000);
		drain__rings(s);
	}
	if (waiting_bytes(s)) {
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

void drain__close(struct session *s)
{
	rings__close(s->drain.rings);
	s->drain.rings = NULL;
	free(s->drain.incoming.bytes);
	free(s->drain.current.bytes);
	s->drain.incoming = s->drain.current = (struct copied_records){};
}
