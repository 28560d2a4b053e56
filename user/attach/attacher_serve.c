// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The attacher's process. All its input comes from the worker, which may be compromised by what it reads: every number
 * is checked. Of a file it reads only single numbers of the ELF section headers itself (semaphores.c); all other
 * parsing is left to a child without privileges (verifier.c).
 */
#include "attach/attacher_wire.h"
#include "attach/opener.h"
#include "attach/ownership.h"
#include "attach/semaphores.h"
#include "attach/task_reader.h"
#include "attach/verifier.h"
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "sandbox/usage.h"
#include "util/signals.h"
#include "util/test_switch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct server {
	const struct probes *probes;
	const struct steering_maps *maps;
	struct links *links;
	struct verifier *verifier;
	struct ownership *ownership;
	int notes; /* pipe with the openers' notes (attach/ownership.h); -1: not used */
	struct bpf_link **tracepoints; /* by program */
	int *events; /* perf events by program and CPU: a descriptor, or negative errno */
	int cpus;
	pid_t command; /* that sonde started; 0: none */
	int command_fd;
	struct openers openers;
	struct task_readers task_readers;
	struct attacher_request request;
	size_t len; /* of the request's data */
	int file; /* descriptor passed with the request; -1: none */
	struct attacher_reply reply;
	size_t reply_len;
	int reply_fd; /* -1: none */
	char lacks[512]; /* parts of the confinement that could not be set up; "": none */
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
 * A compromised worker may request any offset of any file: sites that the file's own tables do not confirm are
 * refused, and so are sites beyond the limits for one file and for all files of one user (kernel/link.h).
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

/*
 * Returns whether the program names no library, so that the family's host code chooses its sites (SECTION_SITE). False
 * for a program whose section ends in " in libc": its family declares that it has sites in the C library.
 */
static bool is_undeclared(const struct program *p)
{
	static const char declared[] = " in libc";
	const char *place = p->section.rest ? p->section.rest : "";
	size_t len = strlen(place), end = strlen(declared);

	return p->section.kind == SECTION_SITE && (len < end || strcmp(place + len - end, declared) != 0);
}

/* Reads the openers' notes, at each request, so that the pipe does not fill up. */
static void take_notes(struct server *s)
{
	struct inode_note note;

	while (s->notes >= 0 && read(s->notes, &note, sizeof(note)) == sizeof(note))
		ownership__add(s->ownership, &note);
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
	/* only programs of section site/ may have semaphores: `counters` has their offsets in the file */
	if (r->counters > 1 || (r->counters && p->section.kind != SECTION_SITE))
		return -EINVAL;
	/* a program that does not handle returns must not be attached to one */
	if (!span && (r->returns || r->method == ATTACH_SESSION))
		return -EINVAL;
	if (!r->n || r->n > ATTACHER_SITES_MAX || s->len != (r->counters ? 3 : 2) * size || r->pid < 0 || s->file < 0)
		return -EINVAL;
	if (r->counters && !semaphores__are(s->file, sites.counters, r->n))
		return -EINVAL;
	err = ownership__check(s->ownership, s->file, is_undeclared(p));
	if (err)
		return err;
	err = attach_sites(s, p, &sites);
	if (!err && r->counters)
		semaphores__wake(s->file);
	return err;
}

/* Does the program run at perf events: at major page faults, or at the ticks of a clock? */
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
 * Opens the perf events while the process still has its capabilities: with Debian's kernel.perf_event_paranoid of 3
 * they need CAP_SYS_ADMIN, which this process drops; from Linux 6.12 on even a process with CAP_PERFMON needs it.
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

/* Attaches on each CPU; a CPU that is offline has no event. The events are stopped together with the sites. */
static int attach_events(struct server *s, const struct program *p)
{
	u32 hz = s->request.n;
	u64 period = 0;
	int err = -ENODEV;

	/* a timer per CPU; also on idle CPUs, so that missing ticks can be counted */
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

	/* SONDE_TEST=refuse-attach:NAME */
	if (p && test_switch__matches("refuse-attach", p->name))
		return -EINVAL;
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

static int serve_lacks(struct server *s)
{
	size_t len = strlen(s->lacks);

	memcpy(s->reply.bytes, s->lacks, len);
	s->reply_len = REPLY_HEAD + len;
	return (int)len;
}

static int serve_opener(struct server *s)
{
	s->reply_fd = openers__start(&s->openers);
	return s->reply_fd < 0 ? s->reply_fd : 0;
}

static int serve_tasks(struct server *s)
{
	if (s->request.pid <= 0)
		return -EINVAL;
	s->reply_fd = task_readers__start(&s->task_readers, (u32)s->request.pid, s->openers.remote_files);
	return s->reply_fd < 0 ? s->reply_fd : 0;
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
	case OP_LACKS:
		return serve_lacks(s);
	case OP_OPENER:
		return serve_opener(s);
	case OP_TASKS:
		return serve_tasks(s);
	case OP_SIGNAL:
		return serve_signal(s);
	case OP_MAP_SET:
		return serve_map(s, true);
	case OP_MAP_DELETE:
		return serve_map(s, false);
	}
	return -EINVAL;
}

/* The kernel may reuse the pid of a child once it is waited for, so it is removed from the lists here. */
static void reap(struct server *s)
{
	pid_t pid;

	while ((pid = usage__wait(-1, NULL, WNOHANG)) > 0) {
		openers__ended(&s->openers, pid);
		task_readers__ended(&s->task_readers, pid);
		verifier__ended(s->verifier, pid);
	}
}

/* false: the worker has ended. */
static bool serve_one(struct server *s, int sock)
{
	ssize_t n = message__receive(sock, &s->request, sizeof(s->request), &s->file);
	bool ok;

	if (n <= 0)
		return false;
	reap(s);
	take_notes(s);
	s->reply_fd = -1;
	s->reply_len = REPLY_HEAD;
	s->len = n - REQUEST_HEAD;
	memset(&s->reply, 0, sizeof(s->reply));
	s->reply.seq = s->request.seq;
	s->reply.result = n < (ssize_t)REQUEST_HEAD ? -EINVAL : serve_request(s);
	s->reply.refused = syscalls__refused();
	ok = !message__send(sock, &s->reply, s->reply_len, s->reply_fd);
	if (s->reply_fd >= 0)
		close(s->reply_fd);
	if (s->file >= 0)
		close(s->file);
	return ok;
}

static int prepare_notes(struct server *s, const struct attacher_options *options)
{
	int pipes[2];

	s->notes = s->openers.notes = -1;
	if (!options->trusted_files)
		return 0;
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	s->notes = pipes[0];
	s->openers.notes = pipes[1];
	return 0;
}

void attacher__serve(int sock, const struct probes *probes, const struct attacher_options *options)
{
	struct server *s = calloc(1, sizeof(*s));

	signals__withstand("sonde-attacher");
	if (!s)
		_exit(1);
	s->probes = probes;
	s->maps = options->maps;
	s->command = options->command;
	s->command_fd = s->command ? syscall(SYS_pidfd_open, s->command, 0) : -1;
	s->openers.remote_files = options->remote_files;
	s->links = links__new();
	s->verifier = verifier__new();
	s->ownership = ownership__new(options->trusted_files);
	/* if sonde's parent had set SIGCHLD to be ignored, the kernel would reuse a child's pid before reap() runs */
	signal(SIGCHLD, SIG_DFL);
	s->tracepoints = calloc(probes->n_programs, sizeof(*s->tracepoints));
	attacher__raise_limits();
	if (!s->links || !s->verifier || !s->ownership || !s->tracepoints ||
	    attacher__close_others(sock, s->command_fd, probes, s->maps) || open_events(s) ||
	    privileges__attacher(s->command, options->perf_events, s->lacks, sizeof(s->lacks)) ||
	    prepare_notes(s, options))
		_exit(1);
	while (serve_one(s, sock))
		;
	verifier__free(s->verifier);
	/* children that end as zombies would pass to a container's init, which perhaps never waits for them */
	signal(SIGCHLD, SIG_IGN);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	links__free(s->links);
	ownership__free(s->ownership);
	/* the kernel detaches the tracepoints and wakes the processes that wait for this one */
	_exit(0);
}
