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
	[ACTIVITY_STOPPED] = "stopped by a signal",
	[ACTIVITY_TRACED] = "stopped by a tracer",
	[ACTIVITY_FROZEN] = "frozen",
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
