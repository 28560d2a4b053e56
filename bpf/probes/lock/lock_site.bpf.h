/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which code waits for a lock: the call site is searched for on the stack, because libraries have no frame pointers. */
#pragma once

#include "core/sonde.bpf.h"
#include "lock.h"

#define EBUSY 16

/*
 * The mapping of the waiting library (libc, as a rule), by process: call sites are outside of it. Empty for a static
 * program.
 */
struct lock_range {
	u64 start, end;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct lock_range);
} lock_libraries SEC(".maps");

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct lock_range *r)
{
	struct file *file = vma->vm_file;

	/* a lock function linked into the program has no range of its own */
	if (!file || file == BPF_CORE_READ(task, mm, exe_file))
		return 0;
	r->start = vma->vm_start;
	r->end = vma->vm_end;
	return 0;
}

static __always_inline struct lock_range library_of(struct task_struct *task, u64 ip)
{
	u32 tgid = task->tgid;
	struct lock_range *known = bpf_map_lookup_elem(&lock_libraries, &tgid), r = {};

	if (known)
		return *known;
	/* if the mappings are being changed at the moment, the next wait finds it */
	if (!bpf_find_vma(task, ip, on_vma, &r, 0))
		bpf_map_update_elem(&lock_libraries, &tgid, &r, BPF_ANY);
	return r;
}

/* Does a call instruction end at this address? x86: e8 rel32, or ff /2 with its operand forms. */
static __always_inline bool follows_call(u64 address)
{
	u8 b[8];

	if (bpf_probe_read_user(b, sizeof(b), (const void *)(address - 8)))
		return false;
	if (b[3] == 0xe8)
		return true;
	/* call *reg, *(reg); *disp8(reg), *(sib); *disp8(sib); *disp32(reg), *disp32(%rip); *disp32(sib) */
	return (b[6] == 0xff && (b[7] & 0x38) == 0x10) || (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[4] == 0xff && (b[5] & 0x38) == 0x10) || (b[2] == 0xff && (b[3] & 0x38) == 0x10) ||
	       (b[1] == 0xff && (b[2] & 0x38) == 0x10);
}

#define VM_EXEC 4

static long on_code(struct task_struct *task, struct vm_area_struct *vma, bool *code)
{
	*code = vma->vm_flags & VM_EXEC;
	return 0;
}

/* Is code mapped at this address? While the mappings are being changed the answer is yes. */
static __always_inline bool is_code(u64 address)
{
	bool code = false;
	long err = bpf_find_vma(bpf_get_current_task_btf(), address, on_code, &code, 0);

	return err ? err == -EBUSY : code;
}

/* Is the function that this entry of a table of imports points to in the library? */
static __always_inline bool slot_is_in(u64 slot, const struct lock_range *library)
{
	u64 function = 0;

	bpf_probe_read_user(&function, sizeof(function), (const void *)slot);
	return function >= library->start && function < library->end;
}

/*
 * Does the call that ends at this address go into the library? Through its own module's table (ff 15), or to a stub
 * (e8) that jumps through it (ff 25, after an optional endbr64 and bnd).
 */
static __always_inline bool calls_library(u64 address, const struct lock_range *library)
{
	struct {
		u8 code[4];
		s32 distance;
	} call;
	struct {
		u8 code[2];
		s32 distance;
	} __attribute__((packed)) jump;
	u64 stub;
	u32 word;

	if (bpf_probe_read_user(&call, sizeof(call), (const void *)(address - 8)))
		return 0;
	if (call.code[2] == 0xff && call.code[3] == 0x15)
		return slot_is_in(address + call.distance, library);
	if (call.code[3] != 0xe8)
		return 0;
	stub = address + call.distance;
	if (bpf_probe_read_user(&word, sizeof(word), (const void *)stub))
		return 0;
	if (word == 0xfa1e0ff3)
		stub += 4;
	if (bpf_probe_read_user(&word, sizeof(word), (const void *)stub))
		return 0;
	if ((word & 0xff) == 0xf2)
		stub++;
	if (bpf_probe_read_user(&jump, sizeof(jump), (const void *)stub) || jump.code[0] != 0xff ||
	    jump.code[1] != 0x25)
		return 0;
	return slot_is_in(stub + sizeof(jump) + jump.distance, library);
}

#define STACK_WORDS 32 /* examined at once */
#define STACK_SPAN  (64 << 20)

struct site_search {
	struct lock_range library;
	u64 sp;
	u64 site, at; /* site and its address on the stack */
	bool sure;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct site_search);
} lock_searches SEC(".maps");

static __always_inline struct site_search *site_search(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&lock_searches, &key);
}

/*
 * Is the value `value`, found at address `at` on the stack, the return address of the call site? A global function, so
 * that the verifier checks it once, and not for each value in each program that calls it. Returns true when the search
 * is over.
 */
__noinline int lock_try_value(u64 value, u64 at)
{
	struct site_search *s = site_search();

	if (!s || value < 65536 || value - (s->sp - STACK_SPAN) < 2 * STACK_SPAN || value >> 47 ||
	    (value >= s->library.start && value < s->library.end) || !follows_call(value))
		return false;
	s->sure = calls_library(value, &s->library);
	if (!s->sure && (s->site || !is_code(value)))
		return false;
	s->site = value;
	s->at = at;
	/* in a program without such a library no later value would be a better candidate */
	return s->sure || !s->library.end;
}

/* Searches for the call site from sp upwards. */
static __noinline int search(u64 sp)
{
	u64 words[STACK_WORDS];

	if (bpf_probe_read_user(words, sizeof(words), (const void *)sp))
		return true;
	for (u32 i = 0; i < STACK_WORDS; i++)
		if (lock_try_value(words[i], sp + i * 8))
			return true;
	return false;
}

/*
 * Finds the call site. The waiting library's own frames have no frame pointers, but they are small: the call site is
 * the first value on the stack that is the return address of a call into the library or, without such a value, the
 * first return address at all. Values that earlier calls left behind may lie between. Most functions of the library do
 * not change the frame pointer: if it is above that value, the frames from there on are the callers'.
 */
static __noinline int find_site(struct lock_wait *w, struct pt_regs *regs, struct lock_range *library)
{
	struct site_search *s = site_search();
	u64 frame[2], at;

	if (!w || !regs || !library || !s)
		return 0;
	s->library = *library;
	s->sp = BPF_CORE_READ(regs, sp);
	s->site = 0;
	s->at = 0;
	if (!search(s->sp))
		search(s->sp + STACK_WORDS * 8);
	w->site = s->site;
	at = s->at;
	frame[0] = BPF_CORE_READ(regs, bp);
	if (!at || frame[0] <= at || frame[0] - at > STACK_SPAN || frame[0] & 7 ||
	    bpf_probe_read_user(frame, sizeof(frame), (const void *)frame[0]) || !follows_call(frame[1]))
		return 0;
	w->caller = frame[1];
	if (frame[0] & 7 || frame[0] <= at || frame[0] - at > STACK_SPAN ||
	    bpf_probe_read_user(frame, sizeof(frame), (const void *)frame[0]) || !follows_call(frame[1]))
		return 0;
	w->caller2 = frame[1];
	return 0;
}
