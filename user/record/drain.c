// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the rings into the trace. */
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
			host__event(s, (u8)(e->id - RAW_FAMILIES), e,
				    size); /* not for the trace: the host code makes events of it */
		else
			stack_records__record(s, record, size);
		return;
	}
	err = trace_writer__append(s->writer, record, size);
	/* -EINVAL: of a kind or size that the schema does not know; the writer counts those as lost */
	if (err && err != -EINVAL && !s->write_error)
		s->write_error = err;
	if (s->args->print)
		s->args->print(s->schema, record, size, s->args->print_arg);
	s->traced += EVENT_FAMILY(e->id) != 0;
	s->recorded[EVENT_FAMILY(e->id)]++;
	s->at_tracepoints += s->tracepoints_alone[EVENT_FAMILY(e->id)];
	if (e->id == ID_meta_member)
		filter__note(s, e, size);
	host__event(s, (u8)EVENT_FAMILY(e->id), e, size);
}

static void on_record(void *arg, void *record, u32 size)
{
	drain__append(arg, record, size);
}

int drain__open(struct session *s, char *err, size_t len)
{
	const struct bpf_map *rings = s->skel->maps.rings;
	int ret = rings__open(&s->rings, bpf_map__fd(rings), bpf_map__fd(s->skel->maps.ring_bell),
			      bpf_map__max_entries(rings), s->ring_size);

	hosts__open(s);
	if (ret)
		snprintf(err, len, "cannot map the rings: %s", strerror(-ret));
	return ret;
}

static void keep_record(void *arg, void *record, u32 size)
{
	struct kept_records *k = &((struct session *)arg)->kept_records;
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
 * While an answer of the attacher or the opener is awaited. What a record leads to may ask them too, and would take the
 * answer that is awaited: so the records are only copied, for the next drain__rings().
 */
void drain__keep(struct session *s)
{
	if (s->draining || !s->rings || s->kept_records.used > KEPT_RECORDS_MAX)
		return;
	s->draining = true;
	s->more |= rings__read(s->rings, keep_record, s);
	s->draining = false;
}

static void append_kept(struct session *s)
{
	struct kept_records k = s->kept_records;
	u64 now = session__now(s);

	memset(&s->kept_records, 0, sizeof(s->kept_records));
	for (size_t at = 0; at < k.used; at += sizeof(u64) + (*(u64 *)(k.bytes + at) + 7) / 8 * 8)
		drain__append(s, k.bytes + at + sizeof(u64), *(u64 *)(k.bytes + at));
	free(k.bytes);
	if (k.lost)
		losses__add(s, 0, LOSS_STORAGE, k.lost, now, now, 0);
}

void drain__rings(struct session *s)
{
	/* what a record leads to may drain the rings */
	if (s->draining || !s->rings)
		return;
	s->draining = true;
	append_kept(s);
	s->more = rings__read(s->rings, on_record, s);
	s->drained += !s->more;
	s->draining = false;
}

/* With all probes gone a program may still be at its last record, if its CPU does other things. */
void drain__last(struct session *s)
{
	drain__rings(s);
	for (int ms = 0; ms < 1000 && (rings__pending(s->rings) || s->kept_records.used); ms++) {
		usleep(1000);
		drain__rings(s);
	}
	if (rings__pending(s->rings))
		session__warn(s, "a probe began a record and did not end it: what came after it on its CPU is missing");
}

void drain__close(struct session *s)
{
	rings__close(s->rings);
	s->rings = NULL;
	free(s->kept_records.bytes);
	memset(&s->kept_records, 0, sizeof(s->kept_records));
}
