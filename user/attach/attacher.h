/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process with the privileges of a recording, and how the other one asks it.
 *
 * A recording is two processes. The *worker*, which the user started, reads
 * foreign files and records and writes the trace, with no capability and not as
 * root. The *attacher*, forked from it, has the few capabilities that are left:
 * it opens mapped files, creates iterators and owns all links, and reads nothing
 * foreign. It believes the worker nothing: a request names a program by its
 * number and carries bounded counts (attach/attacher_wire.h).
 *
 * It is also what takes the probes off. A process that is killed while it is
 * inside the kernel putting probes in or taking them out leaves breakpoints in
 * its targets for ever: with SIGKILL pending the kernel gives up on the rest
 * ("uprobe: failed to unregister, leaking uprobe", Linux 6.18). No process has a
 * reason to kill the attacher. When the worker ends, in whatever way, the
 * attacher's socket does too, and it detaches in order and exits.
 */
#ifndef SONDE_ATTACH_ATTACHER_H
#define SONDE_ATTACH_ATTACHER_H

#include "attach/steering.h"
#include "kernel/link.h"
#include "kernel/probes.h"
#include "process/process.h"

#include <signal.h>
#include <sys/types.h>

struct attacher;

/* As many sites fit into one attacher__sites. */
#define ATTACHER_SITES_MAX 1024
/* Ticks a second of a clock. */
#define ATTACHER_HZ_MAX 100000

struct attacher_options {
	pid_t command; /* that sonde itself started, the only one attacher__signal may name; 0: none */
	const struct steering_maps *maps; /* what attacher__map_set may name; NULL: none */
	bool perf_events; /* ATTACH_PERF will be asked for */
	bool trusted_files; /* see ownership.h */
	bool remote_files; /* files on file systems that are served remotely are opened too */
	/* Called while an answer is waited for, every 50 ms; it must ask for nothing itself. NULL: nothing is. */
	void (*idle)(void *arg);
	void *arg;
	const volatile sig_atomic_t
		*stop; /* not 0: the user wants the end, answers are waited for less long. May be NULL */
};

/* Forks it; the programs that it is to attach must be loaded before. 0 or negative errno. */
int attacher__start(struct attacher **out, const struct probes *probes, const struct attacher_options *options);

/*
 * All return 0, a descriptor where it says so, or negative errno. -EPIPE: the attacher is gone. -ETIMEDOUT: no answer came
 * in time. What opens files and reads of other processes is done by the opener (attach/opener.h), of which another is
 * started by the next such call; of the attacher there is one, which is not asked any more.
 */

/*
 * One link of a program on sites of a file. -EBADMSG: none is probed, as the file's own tables do not confirm all of
 * them; verdicts (of sites->n, enum site_verdict; NULL: not asked) says which. -E2BIG: too many sites in this file.
 * -EPERM, -EACCES: a file that is not probed (ownership.h).
 */
int attacher__sites(struct attacher *a, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u8 *verdicts);
/* Takes some of the sites' links off, many at a time; returns how many are left. */
int attacher__detach_sites(struct attacher *a);
/* Takes an object's off, or a family's, see links__drop. */
int attacher__drop(struct attacher *a, u32 object);
/* Of up to ATTACHER_DROPS_MAX objects, which takes hardly longer than of one. */
#define ATTACHER_DROPS_MAX 32
int attacher__drop_all(struct attacher *a, const u32 *objects, u32 n);
/* A tracepoint program's link, or a perf_event program's on major page faults; detaching what is not attached does nothing. */
int attacher__attach(struct attacher *a, const struct program *p);
int attacher__detach(struct attacher *a, const struct program *p);
/* A clock program's events, one a CPU, hz times a second; they are taken off with the sites. */
int attacher__clock(struct attacher *a, const struct program *p, u32 hz);
/* An iterator's descriptor, over one process's tasks or (pid 0) all. */
int attacher__iter(struct attacher *a, const struct program *p, u32 pid);
/*
 * The file behind a mapping, to be read: in any mount namespace, deleted,
 * replaced. m->path (NULL: none) is tried if the process is gone.
 * -ENOEXEC: no ELF file, and nothing else is opened. -EREMOTE: it lies on a file system that is served remotely.
 */
int attacher__open(struct attacher *a, const struct mapping *m);
/*
 * The debug file of an object (its descriptor) at an absolute path in a process's root (pid 0: in this one's), to be read.
 * -EPERM: users other than root and the object's owner could have written it or put it there.
 */
int attacher__open_debug(struct attacher *a, u32 pid, const char *path, int object);
/* /proc/PID/maps; malloc'ed, a NUL follows the text. */
int attacher__maps(struct attacher *a, u32 pid, char **out, size_t *len);
/* The numbers of all processes, a line each, likewise. */
int attacher__processes(struct attacher *a, char **out, size_t *len);
/* All that can be read from an iterator's descriptor, likewise: it waits for locks of the processes that it passes. */
int attacher__read(struct attacher *a, int fd, char **out, size_t *len);
/* What it lacks of its confinement (sandbox/privileges.h), as text; "": nothing. Its children lack the same. */
int attacher__lacks(struct attacher *a, char *out, size_t len);
/* The effective user of a process: 0 or negative errno. */
int attacher__user(struct attacher *a, u32 pid, u32 *uid);
int attacher__image(struct attacher *a, u32 pid, struct process_image *out);
/* Sets a key of a steering map, or with value NULL deletes it; -EPERM: the attacher takes no such value. */
int attacher__map_set(struct attacher *a, const char *map, const void *key, const void *value, u64 flags);
/* To the process that sonde started. */
int attacher__signal(struct attacher *a, pid_t pid, int sig);

/* Readable when the attacher is gone. */
/* In a forked child that goes on with it while the parent waits: its requests are numbered apart. */
void attacher__forked(struct attacher *a);
int attacher__fd(const struct attacher *a);
bool attacher__gone(const struct attacher *a);
/* The number of the first system call that its filter has refused, -1: none. */
int attacher__refused(const struct attacher *a);
/* It did not answer in time; its probes stay until the kernel lets it go on. */
bool attacher__stuck(const struct attacher *a);
/* Has it detach what is left, and waits until it has ended, unless it is stuck. NULL-safe. */
void attacher__free(struct attacher *a);

#endif
