/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Converts the records that the shim hands over (core/shim.h) to events of a family. They are in the target's memory
 * and therefore untrusted: every length is checked, impossible times are rejected, and the pid is the one that the
 * kernel knows. A record's tid is the number in the thread's own pid namespace. If the thread itself hands the record
 * over, it becomes the kernel's number here; otherwise host code translates it (session__translate_tid).
 *
 * A family's file defines SHIM_EVENT, the id of one of its events, SHIM_ROOMS, a name for a map, and includes this
 * once. It passes its table of kinds to shim__take().
 */
#pragma once

#include "core/process_number.bpf.h"
#include "core/shim.h"
#include "core/sonde.bpf.h"

/* A buffer for the longest record; a thread hands over one batch at a time. */
struct shim_room {
	u8 record[RECORD_MAX] __attribute__((aligned(8)));
};

struct {
	TASK_STORAGE(struct shim_room);
} SHIM_ROOMS SEC(".maps");

/* The layout of a kind's event: what precedes the body, the known size of the body, and whether a text follows. */
struct shim_form {
	u16 head, body;
	bool text;
};

#define FORM_SPAN(type)	 sizeof(struct span), sizeof(struct type), false
#define FORM_EVENT(type) sizeof(struct event), sizeof(struct type), false
#define FORM_TEXT(type)	 sizeof(struct event), sizeof(struct type), true
#define FORMS		 32 /* entries of a table: kinds are less */

#define BODY_MAX    255 /* bytes of any body without its text */
#define TEXT_MAX    4000
#define CLOCK_SLACK 10000000ULL /* ns by which times of a device may be ahead, by its clock's error */

struct shim_taking {
	u64 addr; /* address of the next record in the target */
	u64 bytes_left;
	u64 cookie;
	u64 now, started; /* CLOCK_MONOTONIC: events outside of these times are rejected */
	s64 shift; /* offset of CLOCK_MONOTONIC in the target's time namespace */
	/*
	 * The current thread's number in its own pid namespace; 0: tids are not translated. It has 8 bytes, so that
	 * `taken` begins a stack slot: otherwise the verifier of 6.18 tracks each of its values, and processes 400,000
	 * instructions instead of 3,000.
	 */
	u64 own_tid;
	u32 taken;
	u32 rejected; /* number of records */
};

static __always_inline s64 clock_shift(struct task_struct *task)
{
	struct timespec64 t = {};

	if (!bpf_core_field_exists(struct nsproxy, time_ns))
		return 0;
	BPF_CORE_READ_INTO(&t, task, nsproxy, time_ns, offsets.monotonic);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Converts a time of the target; 0: the time is impossible. */
static __always_inline u64 moment(const struct shim_taking *b, u64 time)
{
	time -= b->shift;
	return time >= b->started && time <= b->now + CLOCK_SLACK ? time : 0;
}

/* Fills the event's header. Returns false if the times are inconsistent. */
static __always_inline bool fill_head(const struct shim_taking *b, const struct shim_record *r, struct span *s,
				      bool span)
{
	u64 end = r->end ? moment(b, r->end) : b->now, start = r->start ? moment(b, r->start) : end;

	if (!end || !start || start > end)
		return false;
	event__init(&s->event, EVENT_FAMILY(SHIM_EVENT) << 8 | (r->kind & 0xff), b->cookie, end);
	if (!b->own_tid || r->tid != b->own_tid)
		s->event.tid = r->tid;
	if (b->own_tid && r->tid != b->own_tid)
		s->event.flags = EVENT_OWN_TID;
	if (!r->end)
		s->event.flags |= EVENT_OPEN;
	if (r->kind & SHIM_STARTED_BEFORE)
		s->event.flags |= EVENT_STARTED_BEFORE;
	if (span)
		s->start = start;
	return true;
}

static __always_inline bool shim__send(const struct shim_taking *b, const struct shim_record *r,
				       const struct shim_form *forms)
{
	struct shim_room *room;
	u32 body, head, size;
	struct shim_form form;
	long len = 0;
	u8 *record;

	/*
	 * only the low byte of the event's id is the kind: a larger number would look like a known kind, or like an
	 * event that the schema lacks
	 */
	if ((r->kind & ~SHIM_STARTED_BEFORE) >= FORMS)
		return false;
	form = forms[r->kind & (FORMS - 1)];
	room = bpf_task_storage_get(&SHIM_ROOMS, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!room || !form.body)
		return false;
	record = room->record;
	__builtin_memset(__builtin_assume_aligned(record, 8), 0, 512);
	if (!fill_head(b, r, (struct span *)record, form.head == sizeof(struct span)))
		return false;
	/* an older shim has a shorter body, a newer one a longer */
	body = r->size - sizeof(*r);
	if (body > form.body)
		body = form.body;
	head = form.head & 63;
	if (bpf_probe_read_user(record + head, body & BODY_MAX, (const void *)(b->addr + sizeof(*r))))
		return false;
	size = head + (form.body & BODY_MAX);
	if (form.text) {
		len = bpf_probe_read_user_str(record + size, TEXT_MAX - 512,
					      (const void *)(b->addr + sizeof(*r) + form.body));
		/* without its NUL */
		len = len > 0 && len <= TEXT_MAX - 512 ? len - 1 : 0;
		barrier_var(len);
	}
	emit(record, size + (len & 4095));
	return true;
}

/* Takes the next record of a batch, in the callback of bpf_loop(). Returns 1 to end the loop. */
static __always_inline long shim__take(struct shim_taking *b, const struct shim_form *forms)
{
	struct shim_record r;

	if (b->bytes_left < sizeof(r) || bpf_probe_read_user(&r, sizeof(r), (const void *)b->addr))
		return 1;
	if (r.size < sizeof(r) || r.size > b->bytes_left || r.size > SHIM_RECORD_MAX || r.size % 8)
		return 1;
	if (!shim__send(b, &r, forms))
		b->rejected++;
	b->addr += r.size;
	b->bytes_left -= r.size;
	b->taken++;
	return 0;
}

static __always_inline void shim__count_lost(u64 now, u32 n)
{
	if (n)
		loss__add_n(EVENT_FAMILY(SHIM_EVENT), LOSS_READ, now, n);
}

/*
 * Begins with a batch whose records are at `at`, or behind its head if that is 0. Returns the number of its records; 0:
 * it is not to be read.
 */
static __always_inline u32 shim__begin(struct shim_taking *b, struct pt_regs *ctx, bool in_lane)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 at = ARG1(ctx);
	struct shim_lane_batch head = {};

	b->cookie = bpf_get_attach_cookie(ctx);
	/* the worker leaves out what is not of a capture range */
	if (!probe__is_armed(b->cookie))
		return 0;
	b->now = bpf_ktime_get_ns();
	if (bpf_probe_read_user(&head, in_lane ? sizeof(head) : sizeof(head.batch), (const void *)at) ||
	    head.batch.magic != SHIM_MAGIC || head.batch.bytes < sizeof(head.batch) ||
	    head.batch.bytes > SHIM_BATCH_MAX || head.batch.records > SHIM_BATCH_RECORDS) {
		shim__count_lost(b->now, 1);
		return 0;
	}
	b->started = task__process_start(task);
	b->shift = clock_shift(task);
	b->own_tid = in_lane ? task__ns_number(task) : 0;
	b->addr = in_lane ? head.at : at + sizeof(head.batch);
	b->bytes_left = head.batch.bytes - sizeof(head.batch);
	return head.batch.records;
}

static __always_inline void shim__end(const struct shim_taking *b, u32 records)
{
	shim__count_lost(b->now, b->rejected + (records > b->taken ? records - b->taken : 0));
}

/*
 * The program of a site at which batches are handed over, `take` being the callback that passes the forms; with "+word"
 * it is loaded only with that option of the family.
 */
#define SHIM_SITE(name, target, in_lane, forms) SHIM_SITE_IF("", name, target, in_lane, forms)
#define SHIM_SITE_IF(option, name, target, in_lane, forms)                \
	static long name##_take(u32 i, void *arg)                         \
	{                                                                 \
		return shim__take(arg, forms);                            \
	}                                                                 \
	SEC("entry" option "/" target) int name(struct pt_regs *ctx)      \
	{                                                                 \
		struct shim_taking b = {};                                \
		u32 records = shim__begin(&b, ctx, in_lane);              \
                                                                          \
		if (records) {                                            \
			bpf_loop(SHIM_BATCH_RECORDS, name##_take, &b, 0); \
			shim__end(&b, records);                           \
		}                                                         \
		return 0;                                                 \
	}
