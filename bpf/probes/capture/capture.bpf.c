// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Capture ranges. A program at the call that begins a range, or ends it, changes the process's flag in the calling
 * thread: so the next call of that thread is the first one that is recorded, or the first one that is not. Each range
 * is of one process. The worker gets a record of each change, and cuts what other threads had open.
 */
#include "core/sonde.bpf.h"
#include "capture.h"
#include "probes/torch/torch.h"

const volatile bool capture_steps = false; /* the ranges of NVTX are steps (--step nvtx:NAME) */
const volatile u32 capture_max = 0; /* ranges of each process that are recorded; 0: all */

/* The ranges of a process. */
struct captured {
	u64 started; /* start of the process, because pids are reused */
	u64 since; /* when its range began, ns; 0: it is in none */
	u32 open; /* ranges that are open; nested and overlapping ones are one capture range */
	u32 number; /* of its last range */
	u32 unseen; /* ranges that ended whose begin was not seen */
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct captured);
} captures SEC(".maps");

static __always_inline struct captured *capture__of(u32 tgid)
{
	struct captured *c = bpf_map_lookup_elem(&captures, &tgid), new = {};

	new.started = task__process_start(bpf_get_current_task_btf());
	if (c && c->started == new.started)
		return c;
	bpf_map_update_elem(&captures, &tgid, &new, BPF_ANY);
	return bpf_map_lookup_elem(&captures, &tgid);
}

__weak __noinline int capture__report(u64 since, u32 number, u32 change, u64 now)
{
	struct meta_range e = { .since = since, .number = number, .change = change };

	event__init(&e.event, ID_meta_range, 0, now);
	emit(&e, sizeof(e));
	return 0;
}

static __always_inline void capture__begin(struct captured *c, u32 tgid, u64 now)
{
	if (capture_max && c->number >= capture_max)
		return;
	if (__sync_val_compare_and_swap(&c->since, 0, now))
		return;
	c->number++;
	process__set_captured(tgid, 1);
	capture__report(0, c->number, RANGE_BEGINS, now);
}

static __always_inline void capture__end(struct captured *c, u32 tgid, u64 now)
{
	u64 start = __sync_lock_test_and_set(&c->since, 0);

	if (!start)
		return;
	process__set_captured(tgid, 0);
	capture__report(start, c->number, RANGE_ENDS, now);
}

static __always_inline void capture__unseen(struct captured *c, u64 now)
{
	if (!c->number && !c->unseen++)
		capture__report(0, 0, RANGE_UNSEEN, now);
}

static __always_inline int capture__at_call(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns();
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct captured *c;

	if (!probe__is_armed(cookie))
		return 0;
	c = capture__of(tgid);
	if (!c)
		return 0;
	if (!(cookie >> COOKIE_GROUP_SHIFT)) {
		if (!__sync_val_compare_and_swap(&c->open, 0, 1))
			capture__begin(c, tgid, now);
	} else if (__sync_val_compare_and_swap(&c->open, 1, 0)) {
		capture__end(c, tgid, now);
	} else {
		capture__unseen(c, now);
	}
	return 0;
}

ENTRY(capture_runtime, "libcudart.so:cudaProfilerStart;cudaProfilerStop")
{
	return capture__at_call(ctx);
}

ENTRY(capture_driver, "libcuda.so:cuProfilerStart;cuProfilerStop")
{
	return capture__at_call(ctx);
}

/* The patterns of --capture-range=nvtx:NAME@DOMAIN: 0 the name, 1 the domain. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct glob);
} capture_globs SEC(".maps");

struct capture_text {
	const struct glob *glob;
	u64 state;
	char text[CAPTURE_TEXT];
};

static long take_character(u32 i, struct capture_text *t)
{
	u8 c = t->text[i & (CAPTURE_TEXT - 1)];

	if (!c || !t->glob)
		return 1;
	t->state = glob__step(t->glob, t->state, c);
	return 0;
}

/* Does a text of the target, of which at most CAPTURE_TEXT - 1 bytes are read, match this pattern? NULL is "". */
__weak __noinline int capture__matches(u64 address, u32 pattern)
{
	struct capture_text t = { .state = GLOB_BEGIN };

	t.glob = bpf_map_lookup_elem(&capture_globs, &pattern);
	if (!t.glob || (address && bpf_probe_read_user_str(t.text, sizeof(t.text), (const void *)address) < 0))
		return 0;
	bpf_loop(CAPTURE_TEXT, take_character, &t, 0);
	return t.glob && glob__ends(t.glob, t.state);
}

/* What is counted: pushed ranges of a thread, which are nested, or one range with an id of its own. */
struct range_key {
	u32 tgid, tid; /* tid 0: by id */
	u64 id;
};

struct open_ranges {
	u64 started; /* as in struct captured */
	u64 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct range_key);
	__type(value, struct open_ranges);
} capture_open SEC(".maps");

/* A matching range begins. Returns whether it is within no other of its thread. */
static __always_inline bool capture__opens(const struct range_key *key, u64 started)
{
	struct open_ranges *o = bpf_map_lookup_elem(&capture_open, key), one = { .started = started, .n = 1 };

	if (o && o->started == started && o->n) {
		o->n++;
		return false;
	}
	bpf_map_update_elem(&capture_open, key, &one, BPF_ANY);
	return true;
}

/* A matching range ends. Returns whether it was within no other; *seen: its begin was seen. */
static __always_inline bool capture__closes(const struct range_key *key, u64 started, bool *seen)
{
	struct open_ranges *o = bpf_map_lookup_elem(&capture_open, key);

	*seen = o && o->started == started && o->n;
	return *seen && !--o->n;
}

int torch__end_step(struct torch_range *e);

static __always_inline int capture__end_step(u64 now)
{
	struct torch_range e = {};

	event__init(&e.span.event, ID_torch_range, 0, now);
	return torch__end_step(&e);
}

/*
 * void sonde_cupti_range(uint64_t what, const char *name, const char *domain, uint64_t id), which the shim calls in the
 * thread of the range. id 0: a pushed range, and the pop ends the innermost one of its thread and domain.
 */
ENTRY(capture_nvtx, "libsonde-cupti.so:sonde_cupti_range")
{
	u64 cookie = bpf_get_attach_cookie(ctx), now = bpf_ktime_get_ns(), what = ARG1(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	struct range_key key = { .tgid = task->tgid, .id = ARG4(ctx) };
	u32 tgid = task->tgid;
	struct captured *c;
	bool seen;

	if (!probe__is_armed(cookie) || !capture__matches(ARG2(ctx), 0) || !capture__matches(ARG3(ctx), 1))
		return 0;
	if (capture_steps)
		return what == CAPTURE_ENDS ? capture__end_step(now) : 0;
	c = capture__of(tgid);
	if (!c)
		return 0;
	key.tid = key.id ? 0 : task->pid;
	if (what == CAPTURE_BEGINS) {
		if (capture__opens(&key, c->started) && !__sync_fetch_and_add(&c->open, 1))
			capture__begin(c, tgid, now);
		return 0;
	}
	if (!capture__closes(&key, c->started, &seen)) {
		if (!seen)
			capture__unseen(c, now);
		return 0;
	}
	if (__sync_fetch_and_add(&c->open, -1) != 1)
		return 0;
	capture__end(c, tgid, now);
	/* another thread's range may have begun meanwhile, and have found this one open */
	if (*(volatile u32 *)&c->open)
		capture__begin(c, tgid, now);
	return 0;
}

/* This probe exists only because the kernel raises the shim's semaphore for it. Its program never runs. */
SITE(capture_control, "capture control")
{
	return 0;
}
