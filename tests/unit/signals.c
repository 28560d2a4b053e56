// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

TEST(ends_a_child_of_a_caller_that_ignores_and_blocks_the_signal)
{
	sigset_t alarms;
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGALRM, SIG_IGN);
		sigemptyset(&alarms);
		sigaddset(&alarms, SIGALRM);
		sigprocmask(SIG_BLOCK, &alarms, NULL);
		signals__end_after(1);
		sleep(60);
		_exit(0);
	}
	REQUIRE(pid > 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

TEST_MAIN()
