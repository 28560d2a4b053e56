// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

void signals__withstand(const char *name)
{
	/*
	 * SIGKILL can't be ignored. `timeout -s KILL` sends it to the process group and `killall -9 sonde` to all
	 * processes with a name, so this process leaves the group and changes its name.
	 */
	setsid();
	prctl(PR_SET_NAME, name);
	/* sonde's parent may send these to processes that it finds in other ways */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

void signals__end_after(unsigned int seconds)
{
	sigset_t alarms;

	/* the caller of sonde may have ignored or blocked it */
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(seconds);
}
