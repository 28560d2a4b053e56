// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The attacher itself. All that it gets comes from the worker, which may have
 * been taken over by what it reads: every number is checked, nothing is parsed.
 */
#include "attach/attacher_wire.h"
#include "attach/ownership.h"
#include "attach/privileges.h"
#include "attach/semaphores.h"
#include "attach/syscalls.h"
#include "attach/verifier.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OVERLAYFS_MAGIC 0x794c7630 /* include/uapi/linux/magic.h */

struct server {
	const struct probes *probes;
	const struct steering_maps *maps;
	struct links *links;
	struct verifier *verifier;
	struct ownership *ownership;
	struct bpf_link **tracepoints; /* by program */
	int *events; /* perf events by program and CPU: a descriptor, or negative errno */
	int cpus;
	pid_t command;
	int command_fd;
	struct attacher_request request;
	size_t len; /* of its data */
	int file; /* came beside it, -1: none */
	struct attacher_reply reply;
	size_t reply_len;
	int reply_fd; /* -1: none */
};

static const struct program *program_of(const struct server *s)
{
	const struct program *p;

	if (s->request.program >= s->probes->n_programs)
		return NULL;
	p = &s->probes->programs[s->request.program];
	return p->enabled ? p : NULL;
}

/*
 * A captured worker may ask for any offset of any file: sites that the file's own tables do not confirm are refused, and so
 * are more of them than the libraries that are probed have.
 */
static int attach_sites(struct server *s, const struct program *p, struct link_sites *sites)
{
	const struct attacher_request *r = &s->request;
	bool returns = r->returns || r->method == ATTACH_SESSION;

	if (!links__has_room(s->links, sites))
		return -E2BIG;
	if (!verifier__check(s->verifier, s->file, sites->offsets, r->n, returns, s->reply.verdicts, &sites->fd)) {
		s->reply_len = REPLY_HEAD + r->n;
		return -EBADMSG;
	}
	return links__attach(s->links, p->prog, r->method, sites);
}

/* Its places in the file come from the family's host code; a family that has some in the C library says so. */
static bool is_undeclared(const struct program *p)
{
	static const char declared[] = " in libc";
	const char *place = p->section.rest ? p->section.rest : "";
	size_t len = strlen(place), end = strlen(declared);

	return p->section.kind == SECTION_SITE && (len < end || strcmp(place + len - end, declared) != 0);
}

static int serve_sites(struct server *s)
{
	const struct attacher_request *r = &s->request;
	const struct program *p = program_of(s);
	size_t size = r->n * sizeof(u64);
	struct link_sites sites = {
		.fd = s->file,
		.offsets = (const u64 *)r->data,
		.cookies = (const u64 *)(r->data + size),
		.counters = r->counters ? (const u64 *)(r->data + 2 * size) : NULL,
		.n = r->n,
		.returns = r->returns,
		.pid = r->pid,
		.object = r->object,
	};
	bool span = p && p->section.kind == SECTION_SPAN;
	int err;

	if (!p || (!span && p->section.kind != SECTION_ENTRY && p->section.kind != SECTION_PLACED &&
		   p->section.kind != SECTION_SITE))
		return -EINVAL;
	if (r->method != ATTACH_SESSION && r->method != ATTACH_MULTI && r->method != ATTACH_PERF)
		return -EINVAL;
	/* who has semaphores says so in a site's place */
	if (r->counters > 1 || (r->counters && p->section.kind != SECTION_SITE))
		return -EINVAL;
	/* a program that does not know of returns must not be on one */
	if (!span && (r->returns || r->method == ATTACH_SESSION))
		return -EINVAL;
	if (!r->n || r->n > ATTACHER_SITES_MAX || s->len != (r->counters ? 3 : 2) * size || r->pid < 0 || s->file < 0)
		return -EINVAL;
	if (r->counters && !semaphores__are(s->file, sites.counters, r->n))
		return -EINVAL;
	err = ownership__check(s->ownership, s->file, is_undeclared(p));
	if (err)
		return err;
	return attach_sites(s, p, &sites);
}

/* A perf_event program runs at major page faults, a clock's at its ticks. */
static bool has_events(const struct program *p)
{
	return p->enabled && (p->section.kind == SECTION_CLOCK ||
			      (p->section.kind == SECTION_OTHER && p->type == BPF_PROG_TYPE_PERF_EVENT));
}

static int open_event(const struct program *p, int cpu)
{
	bool clock = p->section.kind == SECTION_CLOCK;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		/* a clock gets its period when it is attached */
		.sample_period = clock ? 1000000000ULL : 1,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * While the capabilities are still there: with Debian's kernel.perf_event_paranoid of 3 these events need
 * CAP_SYS_ADMIN, which this process gives up, from Linux 6.12 on also where CAP_PERFMON would do elsewhere.
 */
static int open_events(struct server *s)
{
	s->cpus = libbpf_num_possible_cpus();
	s->events = s->cpus > 0 ? calloc(s->probes->n_programs, s->cpus * sizeof(*s->events)) : NULL;
	if (!s->events)
		return -ENOMEM;
	for (u32 i = 0; i < s->probes->n_programs; i++)
		for (int cpu = 0; cpu < s->cpus && has_events(&s->probes->programs[i]); cpu++)
			s->events[i * s->cpus + cpu] = open_event(&s->probes->programs[i], cpu);
	return 0;
}

static int attach_event_of(struct server *s, const struct program *p, int *event, u64 period)
{
	int fd = *event;

	if (fd < 0)
		return fd;
	*event = -EBUSY;
	if ((!period || !ioctl(fd, PERF_EVENT_IOC_PERIOD, &period)) &&
	    !ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(p->prog)) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return links__keep(s->links, fd);
	close(fd);
	return -errno;
}

/* On each CPU; one that is off has no such event. They are taken off with the sites. */
static int attach_events(struct server *s, const struct program *p)
{
	u32 hz = s->request.n;
	u64 period = 0;
	int err = -ENODEV;

	/* a timer a CPU; idle ticks too, so that those that do not come can be counted */
	if (p->section.kind == SECTION_CLOCK) {
		if (!hz || hz > ATTACHER_HZ_MAX)
			return -EINVAL;
		period = 1000000000ULL / hz;
	}
	for (int cpu = 0; cpu < s->cpus; cpu++) {
		int one = attach_event_of(s, p, &s->events[s->request.program * s->cpus + cpu], period);

		if (!one)
			err = 0;
		else if (err && one != -ENODEV)
			err = one;
	}
	return err;
}

static int serve_attach(struct server *s)
{
	const struct program *p = program_of(s);
	struct bpf_link **link;

	if (p && has_events(p))
		return p->prog ? attach_events(s, p) : -EINVAL;
	if (!p || p->section.kind != SECTION_TRACEPOINT)
		return -EINVAL;
	link = &s->tracepoints[s->request.program];
	if (*link)
		return 0;
	*link = bpf_program__attach_trace(p->prog);
	return *link ? 0 : -errno;
}

static int serve_detach(struct server *s)
{
	if (!program_of(s))
		return -EINVAL;
	bpf_link__destroy(s->tracepoints[s->request.program]);
	s->tracepoints[s->request.program] = NULL;
	return 0;
}

static int serve_iter(struct server *s)
{
	const struct program *p = program_of(s);
	union bpf_iter_link_info info = { .task.pid = s->request.pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_link *link;
	int err = 0;

	if (!p || p->section.kind != SECTION_ITER || s->request.pid < 0)
		return -EINVAL;
	if (s->request.pid) {
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	link = bpf_program__attach_iter(p->prog, &opts);
	if (!link)
		return -errno;
	s->reply_fd = bpf_iter_create(bpf_link__fd(link));
	if (s->reply_fd < 0)
		err = -errno;
	bpf_link__destroy(link);
	return err;
}

/* Opens for reading what a descriptor names, if it is an ELF file: no device, no other file of anybody's leaves here. */
static int open_elf(int place)
{
	char path[32], magic[SELFMAG];
	struct stat st;
	int fd;

	if (fstat(place, &st) || !S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG))
		return fd;
	close(fd);
	return -ENOEXEC;
}

/* Is it the file that was asked for? Only where a path's numbers are the backing inode's can that be said. */
static bool is_inode(int place, u64 dev, u64 ino)
{
	struct stat st;

	return !fstat(place, &st) && st.st_ino == ino && (((u64)major(st.st_dev) << 20) | minor(st.st_dev)) == dev;
}

static bool on_overlay(int place)
{
	struct statfs fs;

	return fstatfs(place, &fs) || fs.f_type == OVERLAYFS_MAGIC;
}

/* Is what came with the request a path with its NUL, or (if it may be missing) nothing? */
static bool is_path(const struct server *s, bool optional)
{
	u32 n = s->request.n;

	return n == s->len && (n ? !s->request.data[n - 1] : optional);
}

static int reply_elf(struct server *s, int place)
{
	int err;

	if (place < 0)
		return -errno;
	err = s->reply_fd = open_elf(place);
	close(place);
	return err < 0 ? err : 0;
}

static int serve_open(struct server *s)
{
	const struct attacher_request *r = &s->request;
	char path[96];
	int place;

	if (r->pid <= 0 || !is_path(s, true))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", r->pid, r->start, r->end);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place >= 0)
		ownership__mapped(s->ownership, place, r->pid);
	if (place < 0 && r->n) {
		/* gone already: the file may still be where it was; on overlayfs it would be probed twice */
		place = open(r->data, O_PATH | O_CLOEXEC);
		if (place >= 0 && (on_overlay(place) || !is_inode(place, r->dev, r->ino))) {
			close(place);
			return -ESTALE;
		}
	}
	return reply_elf(s, place);
}

/* In the root of a process, where no link leads out of it. */
static int serve_open_path(struct server *s)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	const struct attacher_request *r = &s->request;
	char path[32] = "/";
	int root, place;

	if (r->pid < 0 || !is_path(s, false))
		return -EINVAL;
	if (r->pid)
		snprintf(path, sizeof(path), "/proc/%d/root", r->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	place = syscall(SYS_openat2, root, r->data, &how, sizeof(how));
	if (place < 0)
		place = -errno;
	close(root);
	errno = place < 0 ? -place : 0;
	return reply_elf(s, place);
}

static int serve_maps(struct server *s)
{
	char path[32];

	if (s->request.pid <= 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/maps", s->request.pid);
	s->reply_fd = open(path, O_RDONLY | O_CLOEXEC);
	return s->reply_fd < 0 ? -errno : 0;
}

static void read_text(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* a command line's words end with a NUL each */
	while (n > 0 && !text[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
}

/* The directory keeps a reused pid out. Nothing is an empty text: a kernel thread, or gone. */
static int serve_image(struct server *s)
{
	struct process_image *image = &s->reply.image;
	char path[32];
	ssize_t n;
	int dir;

	snprintf(path, sizeof(path), "/proc/%d", s->request.pid);
	dir = s->request.pid > 0 ? open(path, O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return -ESRCH;
	n = readlinkat(dir, "exe", image->exe, sizeof(image->exe) - 1);
	image->exe[n < 0 ? 0 : n] = '\0';
	read_text(dir, "cmdline", image->command, sizeof(image->command));
	read_text(dir, "cgroup", image->cgroup, sizeof(image->cgroup));
	close(dir);
	s->reply_len = sizeof(s->reply);
	return 0;
}

static int serve_signal(struct server *s)
{
	const struct attacher_request *r = &s->request;

	if (r->pid <= 0 || r->pid != s->command || s->command_fd < 0 || r->n >= (u32)NSIG)
		return -EPERM;
	return syscall(SYS_pidfd_send_signal, s->command_fd, r->n, NULL, 0) ? -errno : 0;
}

static int serve_map(struct server *s, bool set)
{
	const struct attacher_request *r = &s->request;
	const struct steering *map = steering__at(r->program);

	if (!map || s->len != map->key_size + (set ? map->value_size : 0))
		return -EINVAL;
	return steering__set(s->maps, r->program, r->data, set ? r->data + map->key_size : NULL, r->start);
}

static int serve_request(struct server *s)
{
	switch (s->request.op) {
	case OP_SITES:
		return serve_sites(s);
	case OP_DETACH_SITES:
		return links__close_some(s->links);
	case OP_DROP:
		if (s->request.n > ATTACHER_DROPS_MAX || s->len != s->request.n * sizeof(u32))
			return -EINVAL;
		links__drop(s->links, (const u32 *)s->request.data, s->request.n);
		return 0;
	case OP_ATTACH:
		return serve_attach(s);
	case OP_DETACH:
		return serve_detach(s);
	case OP_ITER:
		return serve_iter(s);
	case OP_OPEN:
		return serve_open(s);
	case OP_OPEN_PATH:
		return serve_open_path(s);
	case OP_MAPS:
		return serve_maps(s);
	case OP_IMAGE:
		return serve_image(s);
	case OP_SIGNAL:
		return serve_signal(s);
	case OP_MAP_SET:
		return serve_map(s, true);
	case OP_MAP_DELETE:
		return serve_map(s, false);
	}
	return -EINVAL;
}

/* false: the worker is gone. */
static bool serve_one(struct server *s, int sock)
{
	ssize_t n = message__receive(sock, &s->request, sizeof(s->request), &s->file);
	bool ok;

	if (n <= 0)
		return false;
	s->reply_fd = -1;
	s->reply_len = REPLY_HEAD;
	s->len = n - REQUEST_HEAD;
	memset(&s->reply, 0, sizeof(s->reply));
	s->reply.result = n < (ssize_t)REQUEST_HEAD ? -EINVAL : serve_request(s);
	s->reply.refused = syscalls__refused();
	ok = !message__send(sock, &s->reply, s->reply_len, s->reply_fd);
	if (s->reply_fd >= 0)
		close(s->reply_fd);
	if (s->file >= 0)
		close(s->file);
	return ok;
}

void attacher__serve(int sock, const struct probes *probes, const struct steering_maps *maps, pid_t command,
		     bool perf_events, bool trusted_files)
{
	struct server *s = calloc(1, sizeof(*s));

	attacher__withstand_signals("sonde-attacher");
	if (!s)
		_exit(1);
	s->probes = probes;
	s->maps = maps;
	s->command = command;
	s->command_fd = command ? syscall(SYS_pidfd_open, command, 0) : -1;
	s->links = links__new();
	s->verifier = verifier__new();
	s->ownership = ownership__new(trusted_files);
	/* verifier.c: the kernel is to reap its children */
	signal(SIGCHLD, SIG_IGN);
	s->tracepoints = calloc(probes->n_programs, sizeof(*s->tracepoints));
	attacher__raise_limits();
	if (!s->links || !s->verifier || !s->ownership || !s->tracepoints ||
	    attacher__close_others(sock, s->command_fd, probes, maps) || open_events(s) ||
	    privileges__attacher(command, perf_events))
		_exit(1);
	while (serve_one(s, sock))
		;
	verifier__free(s->verifier);
	links__free(s->links);
	ownership__free(s->ownership);
	/* the kernel takes off the tracepoints and wakes who waits for this process */
	_exit(0);
}
