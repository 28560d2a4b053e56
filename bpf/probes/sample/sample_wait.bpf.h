/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread waits for, from the system call that it is in: the call's number and arguments are in its registers
 * until it returns. Layouts: struct pollfd of include/uapi/asm-generic/poll.h, struct __kernel_timespec of
 * include/uapi/linux/time_types.h, commands of futex(2) of include/uapi/linux/futex.h.
 */
#pragma once

#include "core/file.bpf.h"
#include "core/futex.bpf.h"
#include "core/native.bpf.h"
#include "sample.h"
#include "sample_lock.bpf.h"
#include "core/syscall_traits.bpf.h"

#define TIMER_ABSTIME	1
#define CLOCK_MONOTONIC 1
#define SECOND_NS	1000000000LL

#define FOREVER	   (-1)
#define NO_TIMEOUT 0

static __always_inline s64 of_ms(s32 ms)
{
	return ms < 0 ? FOREVER : ms * 1000000LL;
}

/* A struct timespec of the thread; unit: ns of its second number. */
static __always_inline s64 of_timespec(u64 address, s64 unit, struct task_struct *other)
{
	s64 time[2] = {};

	if (!address)
		return FOREVER;
	if (native__read(time, sizeof(time), address, other))
		return NO_TIMEOUT;
	return time[0] < 1000000000 ? time[0] * SECOND_NS + time[1] * unit : FOREVER;
}

/* Converts a moment into the time from the start of the wait; for CLOCK_REALTIME the worker does it. */
static __always_inline void set_moment(struct raw_sample *raw, s64 moment, bool realtime)
{
	raw->timeout = moment;
	if (moment <= 0)
		return;
	raw->realtime = realtime;
	if (!realtime)
		raw->timeout = moment > (s64)raw->start ? moment - (s64)raw->start : NO_TIMEOUT;
}

static __always_inline void futex_timeout(struct raw_sample *raw, const struct pt_regs *regs, struct task_struct *other)
{
	u32 op = (u32)regs->si, command = op & FUTEX_COMMAND;
	s64 time = of_timespec(regs->r10, 1, other);

	if (command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI)
		set_moment(raw, time, op & FUTEX_CLOCK_REALTIME);
	else if (command == FUTEX_LOCK_PI)
		set_moment(raw, time, true);
	else
		raw->timeout = time;
}

/* For some calls the kernel writes the remaining time back when they return: the timeout is then too short, never too
 * long. */
static __always_inline void take_timeout(struct raw_sample *raw, const struct pt_regs *regs, struct task_struct *other)
{
	switch (raw->nr) {
	case SYS_poll:
		raw->timeout = of_ms((s32)regs->dx);
		break;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		raw->timeout = of_ms((s32)regs->r10);
		break;
	case SYS_ppoll:
	case SYS_rt_sigtimedwait:
		raw->timeout = of_timespec(regs->dx, 1, other);
		break;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		raw->timeout = of_timespec(regs->r10, 1, other);
		break;
	case SYS_pselect6:
		raw->timeout = of_timespec(regs->r8, 1, other);
		break;
	case SYS_select:
		raw->timeout = of_timespec(regs->r8, 1000, other);
		break;
	case SYS_nanosleep:
		raw->timeout = of_timespec(regs->di, 1, other);
		break;
	case SYS_clock_nanosleep:
		if (!(regs->si & TIMER_ABSTIME))
			raw->timeout = of_timespec(regs->dx, 1, other);
		else if (!regs->di || regs->di == CLOCK_MONOTONIC)
			set_moment(raw, of_timespec(regs->dx, 1, other), !regs->di);
		break;
	case SYS_futex:
		futex_timeout(raw, regs, other);
		break;
	}
}

struct fd_search {
	u64 sets[2]; /* addresses of the sets to be read and to be written: bits by descriptor; 0: none */
	u32 found; /* descriptors */
	u32 fd;
};

/* Searches a word of the sets. A descriptor of both sets counts once. */
static long search_word(u32 i, struct fd_search *s)
{
	u64 word, both = 0;
	u32 bit = 0;

	for (u32 set = 0; set < 2; set++)
		if (s->sets[set] && !bpf_probe_read_user(&word, sizeof(word), (const void *)(s->sets[set] + 8 * i)))
			both |= word;
	if (!both)
		return 0;
	s->found += both & (both - 1) ? 2 : 1;
	for (u32 step = 32; step; step /= 2)
		if (!(both >> bit & ((1ULL << step) - 1)))
			bit += step;
	s->fd = i * 64 + bit;
	return 0;
}

/* The descriptor that select waits for, if there is only one. -1: there are none or several, or one beyond 1,024. */
static __noinline s32 select_fd(u64 read_set, u64 write_set, u32 n)
{
	struct fd_search s = { .sets = { read_set, write_set } };

	if (n > 1024)
		return -1;
	bpf_loop((n + 63) / 64, search_word, &s, 0);
	return s.found == 1 ? (s32)s.fd : -1;
}

static __always_inline s32 waited_fd(struct raw_sample *raw, const struct pt_regs *regs, struct task_struct *other)
{
	s32 fd = -1;

	switch (raw->nr) {
	case SYS_poll:
	case SYS_ppoll:
		/* struct pollfd begins with the descriptor */
		if (regs->si != 1 || native__read(&fd, sizeof(fd), regs->di, other))
			return -1;
		return fd;
	case SYS_select:
	case SYS_pselect6:
		return other ? -1 : select_fd(regs->si, regs->dx, (u32)regs->di);
	}
	return traits_of(raw->nr) & (HAS_FD | HAS_FDX) ? (s32)regs->di : -1;
}

/* `other` is `task` if that is not the current task, else NULL. returns: the call has been executed, and the kernel has
 * overwritten the sets of select. */
static __always_inline void describe_wait(struct raw_sample *raw, struct task_struct *task, struct task_struct *other,
					  struct file_cache *cache, bool returns)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s32 fd;

	raw->lock = 0;
	raw->lock_owner = raw->private = 0;
	raw->file = raw->realtime = 0;
	raw->timeout = NO_TIMEOUT;
	if (raw->nr < 0)
		return;
	if (raw->nr == SYS_futex)
		raw->lock = lock_of(task, other, regs->di);
	/* once a wait has ended, its lock has another owner */
	if (raw->nr == SYS_futex && other) {
		raw->lock_owner = futex__owner(regs->di, regs->si & FUTEX_COMMAND, regs->dx, other);
		raw->private = !!(regs->si & FUTEX_PRIVATE_FLAG);
	}
	take_timeout(raw, regs, other);
	if (returns && (raw->nr == SYS_select || raw->nr == SYS_pselect6))
		return;
	fd = waited_fd(raw, regs, other);
	if (fd >= 0)
		raw->file = file__of_fd(task, fd, cache);
}
