// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Moves records from the rings into the trace. */
#include "record/internal.h"
#include "core/stack.h"
#include "sonde.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		/* the family's own code controls its probes by them */
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

static void on_record(void *arg, void *record, u32 size)
{
	drain__append(arg, record, size);
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

static void copy_record(void *arg, void *record, u32 size)
{
	struct copied_records *k = &((struct session *)arg)->drain.copied;
	size_t room = sizeof(u64) + (size + 7) / 8 * 8, bigger = k->size ? k->size * 2 : 1 << 16;
	char *bytes;

	if (k->used + room > k->size) {
		bytes = realloc(k->bytes, bigger);
		if (!bytes) {
			k->lost++;
			return;
		}
		k->bytes = bytes;
		k->size = bigger;
	}
	*(u64 *)(k->bytes + k->used) = size;
	memcpy(k->bytes + k->used + sizeof(u64), record, size);
	k->used += room;
}

/*
 * Called while an answer of the attacher or the opener is awaited. Handling a record may itself send a request, and
 * would then receive the awaited answer: so the records are only copied here, for the next drain__rings().
 */
void drain__copy(struct session *s)
{
	if (s->drain.busy || !s->drain.rings || s->drain.copied.used > COPIED_RECORDS_MAX)
		return;
	s->drain.busy = true;
	s->drain.more |= rings__read(s->drain.rings, copy_record, s);
	s->drain.busy = false;
}

static void append_copied(struct session *s)
{
	struct copied_records k = s->drain.copied;
	u64 now = session__now(s);

	memset(&s->drain.copied, 0, sizeof(s->drain.copied));
	for (size_t at = 0; at < k.used; at += sizeof(u64) + (*(u64 *)(k.bytes + at) + 7) / 8 * 8)
		drain__append(s, k.bytes + at + sizeof(u64), *(u64 *)(k.bytes + at));
	free(k.bytes);
	if (k.lost)
		losses__add(s, 0, LOSS_STORAGE, k.lost, now, now, 0);
}

void drain__rings(struct session *s)
{
	/* handling a record may drain the rings */
	if (s->drain.busy || !s->drain.rings)
		return;
	s->drain.busy = true;
	append_copied(s);
	s->drain.more = rings__read(s->drain.rings, on_record, s);
	s->drain.done += !s->drain.more;
	s->drain.busy = false;
}

/* After all probes are detached, a program may still be writing its last record if its CPU was interrupted. */
void drain__last(struct session *s)
{
	drain__rings(s);
	for (int ms = 0; ms < 1000 && (rings__pending(s->drain.rings) || s->drain.copied.used); ms++) {
		usleep(1000);
		drain__rings(s);
	}
	if (rings__pending(s->drain.rings))
		session__warn(s, "a probe began a record and did not end it: what came after it on its CPU is missing");
}

void drain__close(struct session *s)
{
	rings__close(s->drain.rings);
	s->drain.rings = NULL;
	free(s->drain.copied.bytes);
	memset(&s->drain.copied, 0, sizeof(s->drain.copied));
}
