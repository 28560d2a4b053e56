// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As include/uapi/linux/bpf.h has it; libbpf 1.1's copy ends before uprobe_multi. */
struct link_create_uprobe_multi {
	u32 prog_fd;
	u32 target_fd;
	u32 attach_type;
	u32 flags;
	u64 path;
	u64 offsets;
	u64 ref_ctr_offsets;
	u64 cookies;
	u32 cnt;
	u32 multi_flags;
	u32 pid;
	u32 pad;
};

#define UPROBE_MULTI_RETURN 1

struct links {
	int *fds;
	u32 n, max;
	struct bpf_link **perf;
	u32 n_perf, max_perf;
};

struct links *links__new(void)
{
	return calloc(1, sizeof(struct links));
}

static int grow(void *array, u32 *max, u32 n, size_t size)
{
	void **p = array, *bigger;
	u32 want = *max ? *max * 2 : 64;

	if (n < *max)
		return 0;
	bigger = realloc(*p, want * size);
	if (!bigger)
		return -ENOMEM;
	*p = bigger;
	*max = want;
	return 0;
}

int links__keep(struct links *l, int fd)
{
	if (grow(&l->fds, &l->max, l->n, sizeof(*l->fds))) {
		close(fd);
		return -ENOMEM;
	}
	l->fds[l->n++] = fd;
	return 0;
}

/* The kernel wants a path; this one leads to the very file, wherever it is or was. */
static void path_of(int fd, char *buf, size_t len)
{
	snprintf(buf, len, "/proc/self/fd/%d", fd);
}

int link__create_multi(int prog_fd, u32 attach_type, const struct link_sites *sites)
{
	char path[32];
	struct link_create_uprobe_multi attr = {
		.prog_fd = prog_fd,
		.attach_type = attach_type,
		.path = (u64)(uintptr_t)path,
		.offsets = (u64)(uintptr_t)sites->offsets,
		.cookies = (u64)(uintptr_t)sites->cookies,
		.cnt = sites->n,
		.multi_flags = sites->returns ? UPROBE_MULTI_RETURN : 0,
		.pid = sites->pid,
	};
	int fd;

	path_of(sites->fd, path, sizeof(path));
	fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int attach_perf(struct links *l, const struct bpf_program *prog, const struct link_sites *sites)
{
	struct bpf_link *link;
	char path[32];

	path_of(sites->fd, path, sizeof(path));
	for (u32 i = 0; i < sites->n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = sites->cookies[i], .retprobe = sites->returns);

		if (grow(&l->perf, &l->max_perf, l->n_perf, sizeof(*l->perf)))
			return -ENOMEM;
		link = bpf_program__attach_uprobe_opts(prog, sites->pid ? sites->pid : -1, path, sites->offsets[i],
						       &opts);
		if (!link)
			return -errno;
		l->perf[l->n_perf++] = link;
	}
	return 0;
}

int links__attach(struct links *l, const struct bpf_program *prog, enum attach_method method,
		  const struct link_sites *sites)
{
	int fd;

	if (!sites->n)
		return 0;
	if (method == ATTACH_PERF)
		return attach_perf(l, prog, sites);
	fd = link__create_multi(bpf_program__fd(prog),
				method == ATTACH_SESSION ? ATTACH_TYPE_UPROBE_SESSION : ATTACH_TYPE_UPROBE_MULTI,
				sites);
	return fd < 0 ? fd : links__keep(l, fd);
}

#define CLOSERS 32 /* links that are closed at once: the kernel waits some 50 ms for each */

static void *close_fd(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

static void *close_perf(void *arg)
{
	bpf_link__destroy(arg);
	return NULL;
}

u32 links__close_some(struct links *l)
{
	pthread_t threads[CLOSERS];
	u32 n = 0;

	for (u32 i = 0; i < CLOSERS && l->n + l->n_perf; i++) {
		void *(*fn)(void *) = l->n ? close_fd : close_perf;
		void *arg = l->n ? (void *)(intptr_t)l->fds[--l->n] : l->perf[--l->n_perf];

		if (pthread_create(&threads[n], NULL, fn, arg))
			fn(arg);
		else
			n++;
	}
	for (u32 i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return l->n + l->n_perf;
}

void links__free(struct links *l)
{
	if (!l)
		return;
	while (links__close_some(l))
		;
	free(l->fds);
	free(l->perf);
	free(l);
}
