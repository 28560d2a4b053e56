// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/priority.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#define LOWEST		1 /* of the real-time priorities */
#define WITHOUT_WAIT_US 500000

static void set(int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	sched_setscheduler(0, policy, &param);
}

/* RLIMIT_RTTIME */
static void on_limit(int signal)
{
	priority__lower();
}

void priority__raise(void)
{
	struct rlimit time = { WITHOUT_WAIT_US, RLIM_INFINITY };

	if (setrlimit(RLIMIT_RTTIME, &time))
		return;
	signal(SIGXCPU, on_limit);
	/* the privilege is dropped before the recording ends; fails if it is dropped already */
	setrlimit(RLIMIT_RTPRIO, &(struct rlimit){ LOWEST, LOWEST });
	set(SCHED_RR, LOWEST);
}

void priority__lower(void)
{
	set(SCHED_OTHER, 0);
}
