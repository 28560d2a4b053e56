// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prepares the attacher's process after the fork. */
#include "attach/attacher_wire.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void attacher__close_all_but(int *keep, int n)
{
	int next = STDERR_FILENO + 1;

	qsort(keep, n, sizeof(*keep), compare_fds);
	for (int i = 0; i < n; i++) {
		if (keep[i] > next)
			close_range(next, keep[i] - 1, 0);
		if (keep[i] >= next)
			next = keep[i] + 1;
	}
	close_range(next, ~0U, 0);
}

/* Closes all inherited descriptors that the attacher does not need: the trace, the worker's input, the terminal. */
int attacher__close_others(int sock, int command_fd, const struct probes *probes, const struct steering_maps *maps)
{
	int *keep = calloc(probes->n_programs + STEERING_MAX + 2, sizeof(*keep)), n = 0, null;

	if (!keep)
		return -ENOMEM;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
	keep[n++] = sock;
	if (command_fd >= 0)
		keep[n++] = command_fd;
	for (u32 i = 0; maps && i < steering__count(); i++)
		if (maps->fds[i] >= 0)
			keep[n++] = maps->fds[i];
	for (u32 i = 0; i < probes->n_programs; i++)
		if (probes->programs[i].enabled)
			keep[n++] = bpf_program__fd(probes->programs[i].prog);
	attacher__close_all_but(keep, n);
	free(keep);
	return 0;
}

void attacher__raise_limits(void)
{
	struct rlimit files;
	FILE *f = fopen("/proc/self/oom_score_adj", "we");

	/* if the kernel killed this process for memory, no probe would be detached in order, and little memory freed */
	if (f) {
		fputs("-1000", f);
		fclose(f);
	}
	/* with perf events each site needs a descriptor */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}
