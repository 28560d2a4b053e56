// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies the records that the shim hands over (core/shim.h). They are in the target's memory and therefore untrusted:
 * every length is checked, impossible times are rejected, and pid and tid are those that the kernel knows.
 */
#include "core/sonde.bpf.h"
#include "gpu.h"

OPTION(gpu, nodes, "each node of a graph, not the graph as a whole");

/* A buffer for the longest record; a shim sends records from one thread only. */
struct gpu_room {
	u8 record[RECORD_MAX] __attribute__((aligned(8)));
};

struct {
	TASK_STORAGE(struct gpu_room);
} gpu_rooms SEC(".maps");

/* The layout of a kind's event: what precedes the body, the known size of the body, and whether a text follows. */
struct gpu_form {
	u16 head, body;
	bool text;
};

#define FORM_SPAN(type)	 sizeof(struct span), sizeof(struct type), false
#define FORM_EVENT(type) sizeof(struct event), sizeof(struct type), false
#define FORM_TEXT(type)	 sizeof(struct event), sizeof(struct type), true

static const struct gpu_form forms[32] = {
	[SHIM_KERNEL] = { FORM_SPAN(shim_kernel) },  [SHIM_MEMCPY] = { FORM_SPAN(shim_memcpy) },
	[SHIM_MEMSET] = { FORM_SPAN(shim_memset) },  [SHIM_SYNCHRONIZATION] = { FORM_SPAN(shim_sync) },
	[SHIM_GRAPH] = { FORM_SPAN(shim_graph) },    [SHIM_ALLOCATION] = { FORM_EVENT(shim_allocation) },
	[SHIM_POOL] = { FORM_EVENT(shim_pool) },     [SHIM_CALL] = { FORM_SPAN(shim_call) },
	[SHIM_DEVICE] = { FORM_EVENT(shim_device) }, [SHIM_CONTEXT] = { FORM_EVENT(shim_context) },
	[SHIM_STREAM] = { FORM_EVENT(shim_stream) }, [SHIM_NAME] = { FORM_TEXT(shim_name) },
	[SHIM_CLOCK] = { FORM_EVENT(shim_clock) },   [SHIM_DROPPED] = { FORM_EVENT(shim_dropped) },
	[SHIM_STATE] = { FORM_TEXT(shim_state) },
};

#define BODY_MAX    255 /* bytes of any body without its text */
#define TEXT_MAX    4000
#define CLOCK_SLACK 10000000ULL /* ns by which times of a device may be ahead, by its clock's error */

struct gpu_batch {
	u64 addr; /* address of the next record in the target */
	u64 bytes_left; /* bytes left */
	u64 cookie;
	u64 now, started; /* CLOCK_MONOTONIC: events outside of these times are rejected */
	s64 shift; /* offset of CLOCK_MONOTONIC in the target's time namespace */
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
static __always_inline u64 moment(const struct gpu_batch *b, u64 time)
{
	time -= b->shift;
	return time >= b->started && time <= b->now + CLOCK_SLACK ? time : 0;
}

/* Fills the event's header. Returns false if the times are inconsistent. */
static __always_inline bool fill_head(const struct gpu_batch *b, const struct shim_record *r, struct span *s, bool span)
{
	u64 end = r->end ? moment(b, r->end) : b->now, start = r->start ? moment(b, r->start) : end;

	if (!end || !start || start > end)
		return false;
	event__init(&s->event, EVENT_FAMILY(ID_gpu_kernel) << 8 | (r->kind & 0xff), b->cookie, end);
	s->event.tid = r->tid;
	if (!r->end)
		s->event.flags = EVENT_OPEN;
	if (span)
		s->start = start;
	return true;
}

static __always_inline bool send(const struct gpu_batch *b, const struct shim_record *r)
{
	struct gpu_room *room;
	u32 body, head, size;
	struct gpu_form form;
	long len = 0;
	u8 *record;

	/*
	 * only the low byte of the event's id is the kind: a larger number would look like a known kind, or like an
	 * event that the schema lacks
	 */
	if (r->kind >= SHIM_KINDS)
		return false;
	form = forms[r->kind & 31];
	room = bpf_task_storage_get(&gpu_rooms, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
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

static long take_record(u32 i, void *arg)
{
	struct gpu_batch *b = arg;
	struct shim_record r;

	if (b->bytes_left < sizeof(r) || bpf_probe_read_user(&r, sizeof(r), (const void *)b->addr))
		return 1;
	if (r.size < sizeof(r) || r.size > b->bytes_left || r.size > SHIM_RECORD_MAX || r.size % 8)
		return 1;
	if (!send(b, &r))
		b->rejected++;
	b->addr += r.size;
	b->bytes_left -= r.size;
	b->taken++;
	return 0;
}

static __always_inline void count_lost(u32 reason, u64 now, u32 n)
{
	if (n)
		loss__add_n(EVENT_FAMILY(ID_gpu_kernel), reason, now, n);
}

/* void sonde_cupti_records(const void *batch, uint64_t bytes) */
ENTRY(gpu_records, "libsonde-cupti.so:sonde_cupti_records")
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), at = ARG1(ctx);
	struct shim_batch head;
	struct gpu_batch b = {
		.addr = at + sizeof(head),
		.cookie = cookie,
		.now = bpf_ktime_get_ns(),
		.started = task__process_start(task),
		.shift = clock_shift(task),
	};

	if (!probe__is_selected(cookie))
		return 0;
	if (bpf_probe_read_user(&head, sizeof(head), (const void *)at) || head.magic != SHIM_MAGIC ||
	    head.bytes < sizeof(head) || head.bytes > SHIM_BATCH_MAX || head.records > SHIM_BATCH_RECORDS) {
		count_lost(LOSS_READ, b.now, 1);
		return 0;
	}
	b.bytes_left = head.bytes - sizeof(head);
	bpf_loop(SHIM_BATCH_RECORDS, take_record, &b, 0);
	count_lost(LOSS_READ, b.now, b.rejected + (head.records > b.taken ? head.records - b.taken : 0));
	return 0;
}

/* These probes exist only because the kernel raises the shim's semaphores for them. Their program never runs. */
SITE(gpu_control, "cupti control")
{
	return 0;
}
