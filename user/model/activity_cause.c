// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/activity_cause.h"

#include <string.h>

#include "output/text.h"
#include "util/array.h"

static const char *const texts[ACTIVITY_CAUSES] = {
	[ACTIVITY_ON_CPU] = "on a CPU",
	[ACTIVITY_CPU] = "waiting for a CPU",
	[ACTIVITY_QUOTA] = "throttled by its CPU quota",
	[ACTIVITY_ASLEEP] = "asleep (cause not recorded)",
	[ACTIVITY_UNINTERRUPTIBLE] = "uninterruptible (cause not recorded)",
	[ACTIVITY_STOPPED] = "stopped",
	[ACTIVITY_NOT_RECORDED] = "not known (no scheduling was recorded)",
	[ACTIVITY_LOST] = "not known (records were lost)",
	[ACTIVITY_UNOBSERVED] = "not known (not followed)",
};

static const struct {
	const char *calls; /* with spaces between them */
	enum activity_cause cause;
} syscalls[] = {
	{ "nanosleep clock_nanosleep", ACTIVITY_SLEEP },
	{ "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 accept accept4 wait4 waitid pause "
	  "rt_sigsuspend rt_sigtimedwait mq_timedreceive msgrcv inotify_wait io_getevents io_pgetevents "
	  "io_uring_enter restart_syscall semtimedop semop",
	  ACTIVITY_EVENTS },
	{ "futex futex_wait futex_waitv", ACTIVITY_FUTEX },
	{ "connect sendto sendmsg sendmmsg", ACTIVITY_SEND },
	{ "recvfrom recvmsg recvmmsg", ACTIVITY_RECEIVE },
	{ "fsync fdatasync sync syncfs sync_file_range msync readahead", ACTIVITY_SYNC },
	{ "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 sendfile splice",
	  ACTIVITY_TRANSFER },
};

static const u8 marks[ACTIVITY_CAUSES] = {
	[ACTIVITY_ON_CPU] = ACTIVITY_MARK_RUN,
	[ACTIVITY_CPU] = ACTIVITY_MARK_CPU,
	[ACTIVITY_QUOTA] = ACTIVITY_MARK_CPU,
	[ACTIVITY_GIL] = ACTIVITY_MARK_GIL,
	[ACTIVITY_LOCK] = ACTIVITY_MARK_LOCK,
	[ACTIVITY_CONDITION] = ACTIVITY_MARK_IDLE,
	[ACTIVITY_NCCL] = ACTIVITY_MARK_NCCL,
	[ACTIVITY_CUDA] = ACTIVITY_MARK_LIBRARY,
	[ACTIVITY_CUDA_SYNC] = ACTIVITY_MARK_LIBRARY,
	[ACTIVITY_GC] = ACTIVITY_MARK_LIBRARY,
	[ACTIVITY_LIBRARY] = ACTIVITY_MARK_LIBRARY,
	[ACTIVITY_DISK] = ACTIVITY_MARK_DISK,
	[ACTIVITY_FAULT] = ACTIVITY_MARK_DISK,
	[ACTIVITY_RECLAIM] = ACTIVITY_MARK_DISK,
	[ACTIVITY_CONNECT] = ACTIVITY_MARK_CALL,
	[ACTIVITY_SLEEP] = ACTIVITY_MARK_CALL,
	[ACTIVITY_EVENTS] = ACTIVITY_MARK_IDLE,
	[ACTIVITY_FUTEX] = ACTIVITY_MARK_CALL,
	[ACTIVITY_SEND] = ACTIVITY_MARK_CALL,
	[ACTIVITY_RECEIVE] = ACTIVITY_MARK_CALL,
	[ACTIVITY_SYNC] = ACTIVITY_MARK_CALL,
	[ACTIVITY_TRANSFER] = ACTIVITY_MARK_CALL,
	[ACTIVITY_SYSCALL] = ACTIVITY_MARK_CALL,
	[ACTIVITY_ASLEEP] = ACTIVITY_MARK_ASLEEP,
	[ACTIVITY_UNINTERRUPTIBLE] = ACTIVITY_MARK_DISK,
	[ACTIVITY_STOPPED] = ACTIVITY_MARK_ASLEEP,
};

enum activity_mark activity_cause__mark(enum activity_cause cause)
{
	return marks[cause];
}

const char *activity_cause__text(enum activity_cause cause)
{
	return texts[cause];
}

enum activity_cause activity_cause__of_syscall(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(syscalls); i++)
		if (text__has_item(syscalls[i].calls, ' ', name))
			return syscalls[i].cause;
	return ACTIVITY_SYSCALL;
}

enum activity_cause activity_cause__of_cuda(const char *name)
{
	return strstr(name, "Synchronize") ? ACTIVITY_CUDA_SYNC : ACTIVITY_CUDA;
}
