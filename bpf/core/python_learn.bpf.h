/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds a process that runs a known CPython to map python_processes, in the process's own context. The worker would be
 * too late: on a busy machine it handles the process's mappings long after the first wait for the GIL, and the
 * attacher refuses data addresses that are not mapped yet when the code is mapped.
 */
#pragma once

#include "core/python_memory.bpf.h"

extern u32 python_last_id; /* the last id that was assigned here: odd numbers; those that the worker assigns are even */

struct python_learned {
	struct python_file_key file;
	struct python_process process;
	u64 before; /* if the address is in anonymous memory, the last address before this memory, otherwise 0 */
	u32 is_python; /* the file is a CPython */
	u32 inside; /* the address is in a mapping of the file */
};

static __always_inline bool python__file_key(struct vm_area_struct *vma, struct python_file_key *key)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	if (!inode)
		return false;
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->pad = 0;
	return true;
}

static long python__on_code(struct task_struct *task, struct vm_area_struct *vma, struct python_learned *l)
{
	struct python_file_key key = {};
	struct python_file *file;
	u64 base;

	if (!python__file_key(vma, &key))
		return 0;
	file = bpf_map_lookup_elem(&python_files, &key);
	if (!file)
		return 0;
	base = vma->vm_start - (vma->vm_pgoff << 12);
	l->file = key;
	l->process.at[0].runtime = base + file->runtime;
	l->process.at[0].code_type = base + file->code_type;
	l->process.at[0].layout = file->layout;
	l->process.n = 1;
	l->is_python = 1;
	return 0;
}

static long python__on_data(struct task_struct *task, struct vm_area_struct *vma, struct python_learned *l)
{
	struct python_file_key key = {};

	if (python__file_key(vma, &key))
		l->inside = key.dev == l->file.dev && key.ino == l->file.ino && key.generation == l->file.generation;
	else
		l->before = vma->vm_start - 1;
	return 0;
}

/*
 * Is the address in a mapping of the file, or in the zero-filled memory directly behind it (.bss)?
 * steering__in_file() checks the same.
 */
static __always_inline bool python__in_file(struct task_struct *task, struct python_learned *l, u64 address)
{
	l->inside = 0;
	l->before = 0;
	bpf_find_vma(task, address, python__on_data, l, 0);
	if (l->before)
		bpf_find_vma(task, l->before, python__on_data, l, 0);
	return l->inside;
}

/*
 * Adds the current process if the code at this address belongs to a known CPython. Returns 0 if it does not, or if the
 * mappings are being changed at the moment. A separate function, so that the verifier checks it once.
 */
__weak __noinline int python__learn(u64 code)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct python_learned l = {};
	u32 tgid = me->tgid;

	if (bpf_find_vma(me, code, python__on_code, &l, 0) || !l.is_python ||
	    !python__in_file(me, &l, l.process.at[0].runtime) || !python__in_file(me, &l, l.process.at[0].code_type))
		return 0;
	l.process.id = __sync_fetch_and_add(&python_last_id, 2) + 2;
	if (bpf_map_update_elem(&python_processes, &tgid, &l.process, BPF_ANY)) {
		loss__count(0, LOSS_MAP_FULL, bpf_ktime_get_ns());
		return 0;
	}
	return 1;
}

/*
 * For a program at an instruction of a CPython: can the current process's stacks be walked? If not, the requested
 * stack is counted as a loss.
 */
__weak __noinline int python__known_here(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);
	u32 tgid = me->tgid;

	if (bpf_map_lookup_elem(&python_processes, &tgid) || python__learn(regs->ip))
		return 1;
	loss__count(0, LOSS_UNKNOWN, bpf_ktime_get_ns());
	return 0;
}
