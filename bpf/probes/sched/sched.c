// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Host code of the scheduler family: follows threads that exist when tracing begins or when their process maps a
 * runtime, and finds facts about this kernel that BPF code can't find by itself.
 */
#include "core/file.h"
#include "kernel/kernel_btf.h"
#include "record/family.h"
#include "sched.h"
#include "util/path.h"
#include "util/recent.h"
#include "util/utf8.h"

#include <bpf/btf.h>
#include <linux/btf.h>
#include <string.h>

/* sched_preempt_count and sched_interrupts of sched.bpf.c */
struct sched_kernel {
	s64 preempt_count;
	u32 interrupts;
};

/*
 * Bits of the preempt count (include/linux/preempt.h) that are set while an interrupt or an NMI is handled. Newer
 * kernels (7.3) also count in it how often interrupts were disabled (local_interrupt_disable()). There this count has
 * the lower of these bits, and interrupts and NMIs have higher ones. Bit 31 may be x86's request to reschedule.
 */
#define INTERRUPTS_AND_NMIS	   0x00ff0000
#define INTERRUPTS_ABOVE_DISABLING 0x0f000000

struct percpu {
	const struct btf *btf;
	const struct btf_type *section;
};

/* The offset of a variable in the per-CPU section; *type is its type. Negative if there is none. */
static s64 percpu__offset(const struct percpu *p, const char *name, u32 *type)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(p->section);

	for (u32 i = 0; i < btf_vlen(p->section); i++, v++) {
		const struct btf_type *var = btf__type_by_id(p->btf, v->type);
		const char *found = var ? btf__name_by_offset(p->btf, var->name_off) : NULL;

		if (found && !strcmp(found, name)) {
			*type = var->type;
			return v->offset;
		}
	}
	return -1;
}

static s64 member_offset(const struct btf *btf, u32 type, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, type);
	const struct btf_member *m;

	/* struct pcpu_hot is a union of a struct and its padding */
	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t || !btf_is_composite(t))
		return -1;
	m = btf_members(t);
	for (u32 i = 0; i < btf_vlen(t); i++) {
		const char *found = btf__name_by_offset(btf, m[i].name_off);
		s64 inner;

		if (found && !strcmp(found, name))
			return btf_member_bit_offset(t, i) / 8;
		if (found && *found)
			continue;
		inner = member_offset(btf, m[i].type, name);
		if (inner >= 0)
			return btf_member_bit_offset(t, i) / 8 + inner;
	}
	return -1;
}

/* The distance from the run queue to the preempt count of the same CPU; 0 if this kernel's BTF does not have it. */
static s64 preempt_count_distance(const struct percpu *p)
{
	s64 rq, count, member;
	u32 type;

	rq = percpu__offset(p, "runqueues", &type);
	count = percpu__offset(p, "__preempt_count", &type);
	/* 6.2 to 6.14 */
	if (count < 0) {
		count = percpu__offset(p, "pcpu_hot", &type);
		member = count < 0 ? -1 : member_offset(p->btf, type, "preempt_count");
		if (member < 0)
			return 0;
		count += member;
	}
	return rq < 0 ? 0 : count - rq;
}

static void describe(const struct btf *btf, struct sched_kernel *kernel)
{
	s32 id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	struct percpu p = { .btf = btf, .section = id > 0 ? btf__type_by_id(btf, id) : NULL };
	bool counts_disabling;
	u32 type;

	if (!p.section)
		return;
	counts_disabling = percpu__offset(&p, "local_interrupt_disable_state", &type) >= 0;
	kernel->preempt_count = preempt_count_distance(&p);
	kernel->interrupts = counts_disabling ? INTERRUPTS_ABOVE_DISABLING : INTERRUPTS_AND_NMIS;
}

static int describe_kernel(struct session *s)
{
	const struct btf *btf = kernel_btf__types();
	struct sched_kernel kernel = {};
	int ret;

	if (btf)
		describe(btf, &kernel);
	ret = session__set_variable(s, "sched_preempt_count", &kernel.preempt_count, sizeof(kernel.preempt_count));
	return ret ? ret : session__set_variable(s, "sched_interrupts", &kernel.interrupts, sizeof(kernel.interrupts));
}

#define TRACERS_MAX 64

static struct recent *tracers_of(const struct session *s)
{
	return session__state(s, EVENT_FAMILY(ID_sched_run));
}

static void begin(struct session *s)
{
	recent__init(tracers_of(s), sizeof(u32), sizeof(u8), TRACERS_MAX);
}

static void end(struct session *s)
{
	recent__free(tracers_of(s));
}

/* A tracer is mostly not followed, so that no other event has its name. */
static void name_tracer(struct session *s, u32 pid)
{
	struct syscall_peer r = { .event = session__event(s, ID_syscall_peer) };
	u8 *known = pid ? recent__get(tracers_of(s), &pid) : NULL;
	struct process_image image;

	if (!known || *known)
		return;
	*known = 1;
	if (session__image(s, pid, &image) || !*image.exe)
		return;
	r.event.pid = r.event.tid = pid;
	utf8__copy(r.comm, sizeof(r.comm), path__file_name(image.exe));
	session__emit(s, &r, sizeof(r));
}

#define SECOND_NS 1000000000ULL

static void on_tick(struct session *s, u64 now)
{
	session__run_iter(s, "sched_throttled", 0);
}

/*
 * ns of BPF programs for a record, measured by bpf_stats. A switch with its wake-up makes two records. The figure for
 * one includes the programs of sample and gil that make no record.
 */
#define RECORD_NS 900

static void event(struct session *s, const struct event *e, u32 size)
{
	bool is_run = e->id == ID_sched_run && size >= sizeof(struct span);

	if (e->id == ID_sched_off && size >= sizeof(struct sched_off))
		name_tracer(s, ((const struct sched_off *)e)->tracer);
	/* no switch has ended an open interval: an iterator wrote it */
	if (is_run || e->id == ID_sched_off)
		session__add_probing(s, is_run ? e->time - ((const struct span *)e)->start : 0,
				     e->flags & EVENT_OPEN ? 0 : RECORD_NS);
}

static const char *const sliced[] = { "sched_switch", "sched_waking", NULL };

static const struct family_part parts[] = {
	FAMILY_WHOLE("sched_switch"),
	FAMILY_WHOLE("sched_begin"),
	FAMILY_PART("sched_waking", "the wakers of threads"),
	FAMILY_PART("sched_wakeup_new", "the starters of threads"),
	FAMILY_PART("sched_forked", "threads that begin while sonde traces"),
	FAMILY_PART("sched_open", "the states of threads when the recording stopped"),
	FAMILY_PART("sched_throttle*", "limits of cgroups (CPU quotas, memory), and the CPU time of other processes"),
	FAMILY_PARTS_END,
};

FAMILY_HOST(sched) = {
	.name = "sched",
	.parts = parts,
	.state = sizeof(struct recent),
	.begin = begin,
	.end = end,
	.is_runtime = runtime__is_one,
	.configure = describe_kernel,
	.follow_iterator = "sched_begin",
	.baseline = "sched_throttled",
	.tick = on_tick,
	.tick_ns = SECOND_NS,
	.event = event,
	.sliced = sliced,
	.open_iterator = "sched_open",
};
