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
static u64 time_calls(enum trial_target target)
{
	u64 best = ~0ULL;

	for (int round = 0; round < 10; round++) {
		u64 start = now_ns(), took;

		for (int i = 0; i < 20; i++)
			trial__targets[target]();
		took = (now_ns() - start) / 20;
		if (took < best)
			best = took;
	}
	return best;
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

struct costs {
	u64 entry_ns, span_ns;
};

struct trials {
	struct trial multi, session, confined;
};

static void probe_here(struct features *f, struct trials *t)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int fd;

	f->btf = btf && !libbpf_get_error(btf);
	if (f->btf)
		btf__free(btf);
	fd = trial__load(0);
	f->bpf = fd >= 0;
	f->error = fd < 0 ? fd : 0;
	if (!f->bpf)
		return;
	close(fd);
	if (!features__test_switch("no-multi"))
		f->multi = !trial__open(&t->multi, TRIAL_MULTI, ATTACH_TYPE_UPROBE_MULTI, getpid(), false);
	if (!features__test_switch("no-session"))
		f->session = !trial__open(&t->session, TRIAL_SESSION, ATTACH_TYPE_UPROBE_SESSION, getpid(), false);
	f->returns = !f->multi || trial__return(&t->confined, f->session);
}

/* Answers with the features and then, while the parent goes on, with the costs. */
static void answer(int fd)
{
	const struct trial none = { -1, -1, -1 };
	struct trials t = { none, none, none };
	struct costs costs = {};
	struct features f = {};

	attacher__ignore_signals();
	probe_here(&f, &t);
	/* a short answer is no answer: the parent sees to that */
	if (write(fd, &f, sizeof(f)) < 0)
		_exit(1);
	if (f.multi)
		costs.entry_ns = time_calls(TRIAL_MULTI);
	if (f.session)
		costs.span_ns = time_calls(TRIAL_SESSION);
	if (write(fd, &costs, sizeof(costs)) < 0)
		_exit(1);
	trial__close(&t.multi);
	trial__close(&t.session);
	trial__close(&t.confined);
	_exit(0);
}

/* In a child, so that a kill of this process in the middle leaves no breakpoint: see attach/attacher.h. */
void features__probe(struct features *f)
{
	int fds[2], child;

	memset(f, 0, sizeof(*f));
	if (pipe2(fds, O_CLOEXEC)) {
		f->error = -errno;
		return;
	}
	child = fork();
	if (!child)
		answer(fds[1]);
	close(fds[1]);
	if (child < 0 || read(fds[0], f, sizeof(*f)) != sizeof(*f)) {
		memset(f, 0, sizeof(*f));
		f->error = -ECHILD;
	}
	if (child < 0)
		close(fds[0]);
	f->costs = fds[0];
	f->child = child;
}

void features__finish(struct features *f)
{
	struct costs costs = {};

	if (f->child <= 0)
		return;
	if (read(f->costs, &costs, sizeof(costs)) == sizeof(costs)) {
		f->entry_ns = costs.entry_ns;
		f->span_ns = costs.span_ns;
	}
	close(f->costs);
	while (waitpid(f->child, NULL, 0) < 0 && errno == EINTR)
		;
	f->child = 0;
}
