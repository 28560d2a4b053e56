// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/link.h"

#include "util/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A copy from include/uapi/linux/bpf.h; that of libbpf 1.1 has no uprobe_multi. */
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

struct link {
	int fd; /* -1: the link is `perf` */
	struct bpf_link *perf;
	u32 object;
	u32 sites;
	uid_t owner; /* of the file */
	u64 dev, ino; /* of the file */
};

struct links {
	struct link *list;
	u32 n;
};

struct links *links__new(void)
{
	return calloc(1, sizeof(struct links));
}

static void close_link(const struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	bpf_link__destroy(link->perf);
}

/* Takes ownership of the link; closes it if there is no memory. */
static int add(struct links *l, const struct link *link)
{
	if (!array__push(l->list, l->n, *link)) {
		close_link(link);
		return -ENOMEM;
	}
	return 0;
}

int links__keep(struct links *l, int fd)
{
	struct link link = { .fd = fd };

	return add(l, &link);
}

/* The kernel requires a path; this one leads to exactly this file, even if it was moved or deleted. */
static void path_of(int fd, char *buf, size_t len)
{
	snprintf(buf, len, "/proc/self/fd/%d", fd);
}

/*
 * The kernel copies this many bytes at a site (MAX_UINSN_BYTES of arch/x86/include/asm/uprobes.h). They may reach into
 * the next page.
 */
enum { SITE_COPY_BYTES = 16 };

/*
 * The kernel reads the instruction at each site through the page cache, or from the disk, while it holds a lock on
 * the address space of a process that maps the file. ext4 warns of such a read (Linux 6.16 on). So the pages are read
 * in advance. This ends at the first site that can't be read, which the kernel will refuse.
 */
static void read_sites(const struct link_sites *sites)
{
	u8 code[SITE_COPY_BYTES];

	for (u32 i = 0; i < sites->n; i++)
		if (pread(sites->fd, code, sizeof(code), (off_t)sites->offsets[i]) < 0)
			return;
}

static struct link new_link(const struct link_sites *sites, u32 n)
{
	struct link link = { .fd = -1, .object = sites->object, .sites = n };
	struct stat st;

	if (!fstat(sites->fd, &st)) {
		link.owner = st.st_uid;
		link.dev = st.st_dev;
		link.ino = st.st_ino;
	}
	return link;
}

bool links__has_room(const struct links *l, const struct link_sites *sites)
{
	struct link new = new_link(sites, sites->n);
	u32 file = new.sites;
	u32 user = file;

	for (u32 i = 0; i < l->n; i++) {
		const struct link *link = &l->list[i];

		if (link->dev == new.dev && link->ino == new.ino)
			file += link->sites;
		if (link->owner == new.owner)
			user += link->sites;
	}
	return file <= LINK_FILE_SITES_MAX && (!new.owner || user <= LINK_USER_SITES_MAX);
}

int link__create_multi(int prog_fd, u32 attach_type, const struct link_sites *sites)
{
	char path[32];
	struct link_create_uprobe_multi attr = {
		.prog_fd = prog_fd,
		.attach_type = attach_type,
		.path = (u64)(uintptr_t)path,
		.offsets = (u64)(uintptr_t)sites->offsets,
		.ref_ctr_offsets = (u64)(uintptr_t)sites->counters,
		.cookies = (u64)(uintptr_t)sites->cookies,
		.cnt = sites->n,
		.multi_flags = sites->returns ? UPROBE_MULTI_RETURN : 0,
		.pid = sites->pid,
	};
	int fd;

	read_sites(sites);
	path_of(sites->fd, path, sizeof(path));
	fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

/*
 * The most links that are closed at the same time, by a thread each. A close waits about 50 ms in the kernel, and
 * closes that run at the same time wait together. A user's process may map files that have thousands of links. Closes
 * of perf events partly wait for one another, and too many at a time would exceed the caller's time limit.
 */
#define CLOSERS	     256
#define PERF_CLOSERS 32
#define CLOSER_STACK (64 << 10)

static void *close_one(void *arg)
{
	close_link(arg);
	return NULL;
}

/* Closes at most CLOSERS links, all at the same time. */
static void close_together(struct link *list, u32 n)
{
	pthread_t threads[CLOSERS];
	u32 started = 0;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	for (u32 i = 0; i < n; i++) {
		if (pthread_create(&threads[started], &attr, close_one, &list[i]))
			close_link(&list[i]);
		else
			started++;
	}
	for (u32 i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
}

/* Returns how many of the last n links may be closed at the same time. */
static u32 at_once(const struct links *l, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (i >= CLOSERS || (i >= PERF_CLOSERS && l->list[l->n - i - 1].perf))
			return i;
	return n;
}

/* Closes the last n links. */
static void close_last(struct links *l, u32 n)
{
	while (n) {
		u32 some = at_once(l, n);

		close_together(l->list + l->n - some, some);
		l->n -= some;
		n -= some;
	}
}

static int attach_perf(struct links *l, const struct bpf_program *prog, const struct link_sites *sites)
{
	struct link link = new_link(sites, 1);
	u32 before = l->n;
	char path[32];
	int err = 0;

	read_sites(sites);
	path_of(sites->fd, path, sizeof(path));
	for (u32 i = 0; i < sites->n && !err; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = sites->cookies[i], .retprobe = sites->returns,
			    .ref_ctr_offset = sites->counters ? sites->counters[i] : 0);

		link.perf = bpf_program__attach_uprobe_opts(prog, sites->pid ? sites->pid : -1, path, sites->offsets[i],
							    &opts);
		err = link.perf ? add(l, &link) : -errno;
	}
	/* the caller counts the sites as not attached, and would not watch their file */
	if (err)
		close_last(l, l->n - before);
	return err;
}

int links__attach(struct links *l, const struct bpf_program *prog, enum attach_method method,
		  const struct link_sites *sites)
{
	struct link link = new_link(sites, sites->n);

	if (!sites->n)
		return 0;
	if (method == ATTACH_PERF)
		return attach_perf(l, prog, sites);
	link.fd = link__create_multi(bpf_program__fd(prog),
				     method == ATTACH_SESSION ? ATTACH_TYPE_UPROBE_SESSION : ATTACH_TYPE_UPROBE_MULTI,
				     sites);
	return link.fd < 0 ? link.fd : add(l, &link);
}

u32 links__close_some(struct links *l)
{
	close_last(l, at_once(l, l->n));
	return l->n;
}

/* Does a link belong to this object and family? A part that is 0 matches all; if both are 0, no link matches. */
static bool belongs(u32 link, u32 object)
{
	u32 family = object & ~LINK_OBJECT_MASK, id = object & LINK_OBJECT_MASK;

	return object && (!family || (link & ~LINK_OBJECT_MASK) == family) && (!id || (link & LINK_OBJECT_MASK) == id);
}

static bool belongs_to_one(u32 link, const u32 *objects, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (belongs(link, objects[i]))
			return true;
	return false;
}

void links__drop(struct links *l, const u32 *objects, u32 n)
{
	u32 keep = 0;

	/* moves the links of these objects to the end */
	for (u32 i = 0; i < l->n; i++) {
		struct link link = l->list[i];

		if (belongs_to_one(link.object, objects, n))
			continue;
		l->list[i] = l->list[keep];
		l->list[keep++] = link;
	}
	close_last(l, l->n - keep);
}

void links__free(struct links *l)
{
	if (!l)
		return;
	close_last(l, l->n);
	free(l->list);
	free(l);
}
