// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a thread waits for, by the name of the wait. */
#include <string.h>

#include "report/causes.h"
#include "util/text.h"

static const struct kind {
	const char *word;
	u32 tier;
} kinds[CAUSE_KINDS] = {
	[CAUSE_RUN] = { "on-cpu", 0 },	  [CAUSE_GIL] = { "gil", 0 },	      [CAUSE_LOCK] = { "lock", 0 },
	[CAUSE_DISK] = { "disk", 0 },	  [CAUSE_MEMORY] = { "memory", 0 },   [CAUSE_QUOTA] = { "cpu-quota", 0 },
	[CAUSE_CPU] = { "cpu", 0 },	  [CAUSE_NETWORK] = { "network", 0 }, [CAUSE_LIBRARY] = { "library", 0 },
	[CAUSE_CALL] = { "syscall", 0 },  [CAUSE_BLOCKED] = { "blocked", 0 }, [CAUSE_SLEEP] = { "sleep", 1 },
	[CAUSE_PEER] = { "peer", 1 },	  [CAUSE_FUTEX] = { "futex", 1 },     [CAUSE_IDLE] = { "idle", 2 },
	[CAUSE_ASLEEP] = { "asleep", 2 },
};

const char *cause__word(enum cause_kind kind)
{
	return kinds[kind].word;
}

u32 cause__tier(enum cause_kind kind)
{
	return kinds[kind].tier;
}

/* System calls; those of transfers are told apart by their file. */
static const struct {
	const char *calls; /* with spaces between them */
	enum cause_kind kind;
} calls[] = {
	{ " nanosleep clock_nanosleep ", CAUSE_SLEEP },
	{ " poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 accept accept4 wait4 waitid pause "
	  "rt_sigsuspend rt_sigtimedwait mq_timedreceive msgrcv inotify_wait io_getevents io_pgetevents "
	  "io_uring_enter restart_syscall semtimedop semop ",
	  CAUSE_IDLE },
	{ " futex futex_wait futex_waitv ", CAUSE_FUTEX },
	{ " connect sendto sendmsg sendmmsg ", CAUSE_NETWORK },
	{ " recvfrom recvmsg recvmmsg ", CAUSE_PEER },
	{ " fsync fdatasync sync syncfs sync_file_range msync readahead ", CAUSE_DISK },
};

bool cause__is_transfer(const char *what)
{
	return text__has_item(
		" read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 sendfile splice ", ' ',
		what);
}

enum cause_kind cause__kind_of(const char *what, char mark, u32 what_id)
{
	switch (what_id) {
	case STRETCH_RUN:
		return CAUSE_RUN;
	case STRETCH_WANTED:
		return CAUSE_CPU;
	case STRETCH_BLOCKED:
		return CAUSE_BLOCKED;
	case STRETCH_SLEEP:
	case STRETCH_OTHER:
		return CAUSE_ASLEEP;
	}
	switch (mark) {
	case 'g':
		return CAUSE_GIL;
	case 'l':
		return strcmp(what, "lock") ? CAUSE_IDLE : CAUSE_LOCK;
	case 'd':
		return !strcmp(what, "connect")	       ? CAUSE_NETWORK :
		       !strcmp(what, "memory reclaim") ? CAUSE_MEMORY :
							 CAUSE_DISK;
	case 's':
		for (size_t i = 0; *what && i < sizeof(calls) / sizeof(calls[0]); i++)
			if (text__has_item(calls[i].calls, ' ', what))
				return calls[i].kind;
		return CAUSE_CALL;
	}
	return CAUSE_LIBRARY;
}
