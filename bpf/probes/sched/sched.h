/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of the scheduler: where each thread spends its time. Sources: kernel/sched/core.c, include/linux/sched.h. */
#pragma once

#include "core/event.h"

FAMILY(sched, 0x02, FAMILY_USUAL, "when threads run, why they do not, and who wakes them");

/* Why a thread is off the CPU. */
enum sched_state {
	SCHED_RUNNABLE = 0, /* preempted or yielded */
	SCHED_SLEEP = 1, /* waits, and a signal would end the wait */
	SCHED_BLOCKED = 2, /* waits, uninterruptible: disk, page faults, locks of the kernel */
	SCHED_STOPPED = 3, /* job control */
	SCHED_TRACED = 4, /* stopped by a debugger */
	SCHED_DEAD = 5, /* its last switch */
	SCHED_PARKED = 6, /* kernel thread of a CPU that is off */
	SCHED_IDLE = 7, /* kernel thread without work */
	SCHED_FROZEN = 8, /* by the cgroup freezer or for suspend */
	SCHED_NEW = 9, /* just created, has not run yet */
	SCHED_OTHER = 10, /* another state, or its leaving was not seen */
};

enum sched_waker {
	WAKER_NONE = 0, /* none was needed, or it was not seen */
	WAKER_THREAD = 1, /* waker_pid and waker_tid */
	WAKER_SOFTIRQ = 2, /* a timer, a network packet, ...; waker_pid and waker_tid ran then */
	WAKER_IRQ = 3, /* an interrupt */
};

struct sched_run {
	struct span span;
	enum sched_state state DOC("why it stopped running");
	u32 next_tid UNIT(task) DOC("thread that took the CPU, 0: none (idle)");
	u64 charged UNIT(ns) DOC("CPU time by the kernel's count, without time stolen by a hypervisor");
	u32 allowed DOC("CPUs that it may run on, by its affinity and its cpuset");
	u32 priority
		DOC("the kernel's: 120 for nice 0, 100 to 139 for nice -20 to 19, less for real time; 0: not known");
} EVENT(sched_run, 0x0201, "a thread was on a CPU");

struct sched_off {
	struct span span;
	/* From here to time it waited for a CPU. */
	u64 wake UNIT(moment) DOC("when it became runnable; start: it always was; 0: not yet");
	u64 waited UNIT(ns) DOC("for a CPU, as the kernel counts it");
	u32 waker_pid UNIT(task) DOC("process that woke it, 0: none or an interrupt; of WAKER_SOFTIRQ the one that "
				     "ran then, which sent the packet or is unrelated");
	u32 waker_tid UNIT(task) DOC("its thread");
	enum sched_state state DOC("why it was off the CPU");
	enum sched_waker waker DOC("what woke it");
	u32 signal UNIT(signal) DOC("of SCHED_STOPPED: the signal that stopped it");
	u32 tracer UNIT(task)
		DOC("of SCHED_TRACED: the process that traces it; 0: it no longer did when the stop ended");
} EVENT(sched_off, 0x0202, "a thread was off the CPU");

struct sched_throttle {
	struct event event;
	u64 since UNIT(moment) DOC("the counts are of the time from here on");
	u64 throttled UNIT(ns) DOC("for which the cgroup's threads were throttled, summed over CPUs");
	u64 quota UNIT(ns) DOC("CPU time that the cgroup may use in each period");
	u64 period UNIT(ns);
	u64 periods DOC("that the kernel counted: those in which the cgroup ran");
	u64 throttled_periods DOC("of these, periods in which the quota was used up");
	char cgroup[] DOC("path from the root of its hierarchy");
} EVENT(sched_throttle, 0x0203,
	"how long the CPU quota of a process's cgroup, or of one above it, throttled it; once a second and at its end");

struct sched_memory {
	struct event event;
	u64 since UNIT(moment) DOC("the count is of the time from here on");
	u64 limit UNIT(bytes) DOC("memory that the cgroup may use");
	u64 reached DOC(
		"times that the cgroup could not get memory without exceeding it, so that the kernel had to free some first");
	char cgroup[] DOC("path from the root of its hierarchy");
} EVENT(sched_memory, 0x0204,
	"how often the memory limit of a process's cgroup, or of one above it, was reached; once a second");

struct sched_other {
	struct event event;
	u64 since UNIT(moment) DOC("the time is from here on");
	u64 ran UNIT(ns) DOC("for which the thread ran");
	u32 other_pid UNIT(task) DOC("its process; pid and tid are 0, because it is not recorded");
	u32 other_tid UNIT(task) DOC("the thread");
	char comm[16] DOC("the process's name");
} EVENT(sched_other, 0x0205,
	"CPU time of a thread that is not recorded, if it was 10 ms or more; once a second and at its end");
