// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/features.h"

#include "attach/attacher.h"
#include "attach/trial.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool features__test_switch(const char *word)
{
	const char *list = getenv("SONDE_TEST");
	size_t len = strlen(word);

	for (; list && *list; list = *list ? list + 1 : list) {
		const char *end = strchrnul(list, ',');

		if ((size_t)(end - list) == len && !memcmp(list, word, len))
			return true;
		list = end;
		if (!*list)
			break;
	}
	return false;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The lowest of several rounds: interruptions only ever add. */
static u64 time_calls(void)
{
	u64 best = ~0ULL;

	for (int round = 0; round < 10; round++) {
		u64 start = now_ns(), took;

		for (int i = 0; i < 20; i++)
			trial__target();
		took = (now_ns() - start) / 20;
		if (took < best)
			best = took;
	}
	return best;
}

static bool try_link(u32 attach_type, u64 *cost)
{
	struct trial t;

	if (trial__open(&t, attach_type, getpid(), false))
		return false;
	if (cost)
		*cost = time_calls();
	trial__close(&t);
	return true;
}

bool features__tracepoint(const char *name)
{
	static struct btf *vmlinux; /* some 10 ms to parse, so once */
	char type[128];

	if (!vmlinux)
		vmlinux = btf__load_vmlinux_btf();
	if (!vmlinux || libbpf_get_error(vmlinux))
		return false;
	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(vmlinux, type, BTF_KIND_TYPEDEF) > 0;
}

static void probe_here(struct features *f, bool calibrate)
{
	struct btf *btf;
	int fd;

	memset(f, 0, sizeof(*f));
	btf = btf__load_vmlinux_btf();
	f->btf = btf && !libbpf_get_error(btf);
	fd = trial__load(0);
	f->bpf = fd >= 0;
	f->error = fd < 0 ? fd : 0;
	if (fd >= 0)
		close(fd);
	if (!f->bpf)
		goto out;
	if (!features__test_switch("no-multi"))
		f->multi = try_link(ATTACH_TYPE_UPROBE_MULTI, calibrate ? &f->entry_ns : NULL);
	if (!features__test_switch("no-session"))
		f->session = try_link(ATTACH_TYPE_UPROBE_SESSION, calibrate ? &f->span_ns : NULL);
	f->returns = !f->multi || trial__return(f->session);
out:
	if (f->btf)
		btf__free(btf);
}

/* In a child, so that a kill of this process in the middle leaves no breakpoint: see attach/attacher.h. */
void features__probe(struct features *f, bool calibrate)
{
	int fds[2];
	pid_t pid;

	memset(f, 0, sizeof(*f));
	if (pipe2(fds, O_CLOEXEC)) {
		f->error = -errno;
		return;
	}
	pid = fork();
	if (!pid) {
		attacher__ignore_signals();
		probe_here(f, calibrate);
		/* a short answer is no answer: the parent sees to that */
		if (write(fds[1], f, sizeof(*f)) < 0)
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], f, sizeof(*f)) != sizeof(*f)) {
		memset(f, 0, sizeof(*f));
		f->error = -ECHILD;
	}
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
