/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process with the privileges of a recording, and its interface.
 *
 * A recording consists of two processes. The *worker*, which the user started, parses untrusted files and records and
 * writes the trace, without capabilities and not as root. The *attacher*, forked from it, has the few capabilities
 * that are left: it opens mapped files, creates iterators and owns all links, and parses nothing untrusted. It does
 * not trust the worker: a request names a program by its number and has bounded counts (attach/attacher_wire.h).
 *
 * The attacher also detaches the probes. A process that is killed while the kernel inserts or removes probes for it
 * leaves breakpoints in its targets forever: with a pending SIGKILL the kernel gives up on the rest ("uprobe: failed
 * to unregister, leaking uprobe", Linux 6.18). No process has a reason to kill the attacher. When the worker ends for
 * any reason, its side of the socket is closed, and the attacher detaches in order and exits.
 */
#pragma once

#include "attach/steering.h"
#include "kernel/link.h"
#include "kernel/probes.h"
#include "process/process.h"

#include <signal.h>
#include <sys/types.h>

struct attacher;

/* The most sites in one call of attacher__sites. */
#define ATTACHER_SITES_MAX 1024
/* The most ticks per second of a clock. */
#define ATTACHER_HZ_MAX 100000

/* The time limit of requests to the opener, unless attacher__limit() sets another one. */
#define OPENER_MS 2000

struct attacher_options {
	pid_t command; /* the command that sonde started, the only process that attacher__signal accepts; 0: none */
	const struct steering_maps *maps; /* maps that attacher__map_set accepts; NULL: none */
	bool perf_events; /* ATTACH_PERF will be used */
	bool trusted_files; /* see ownership.h */
	bool remote_files; /* also open files on remote file systems */
	/*
	 * Called for each request and every 10 ms while its answer is awaited; it must make no requests itself. May be
	 * NULL.
	 */
	void (*idle)(void *arg);
	void *arg;
	const volatile sig_atomic_t
		*stop; /* not 0: the user has asked to stop, and time limits are shorter. May be NULL */
};

/* Forks the attacher; the programs that it will attach must be loaded before. Returns 0 or negative errno. */
int attacher__start(struct attacher **out, const struct probes *probes, const struct attacher_options *options);

/*
 * These functions return 0, a descriptor where stated, or negative errno. -EPIPE: the attacher has ended. -ETIMEDOUT:
 * no answer came in time. Requests that open files or read other processes go to the opener (attach/opener.h); after
 * a timeout the next such request starts a new opener. There is only one attacher, which gets no more requests after
 * a timeout.
 */

/*
 * Attaches a program to sites of a file, as one link. -EBADMSG: no site is probed, because the file's own tables do
 * not confirm all of them; verdicts (sites->n of enum site_verdict, or NULL) says which. -E2BIG: too many sites in
 * this file. -EPERM, -EACCES: the file must not be probed (ownership.h).
 */
int attacher__sites(struct attacher *a, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u8 *verdicts);
/* Detaches some of the sites' links, many at a time; returns how many are left. */
int attacher__detach_sites(struct attacher *a);
/* Detaches the links of an object or of a family, see links__drop. */
int attacher__drop(struct attacher *a, u32 object);
/* The same for up to ATTACHER_DROPS_MAX objects, which takes hardly longer than for one. */
#define ATTACHER_DROPS_MAX 32
int attacher__drop_all(struct attacher *a, const u32 *objects, u32 n);
/*
 * Attaches a tracepoint program, or a perf_event program for major page faults; detaching what is not attached does
 * nothing.
 */
int attacher__attach(struct attacher *a, const struct program *p);
int attacher__detach(struct attacher *a, const struct program *p);
/* Starts a clock program's perf events, one per CPU, hz times a second; they are stopped together with the sites. */
int attacher__clock(struct attacher *a, const struct program *p, u32 hz);
/* Creates an iterator over the tasks of one process or (pid 0) of all. Returns its descriptor. */
int attacher__iter(struct attacher *a, const struct program *p, u32 pid);
/*
 * Starts a child that reads the asyncio tasks of a process (attach/task_reader.h). Returns its socket, or negative
 * errno.
 */
int attacher__tasks(struct attacher *a, u32 pid);
/* Sets the time limit of the next requests to the opener: those about files and processes. */
void attacher__limit(struct attacher *a, int ms);
/*
 * Opens the file behind a mapping for reading: in any mount namespace, deleted or replaced. m->path (NULL: none) is
 * tried if the process has ended. -ENOEXEC: not an ELF file, and nothing else is opened. -EREMOTE: the file is on a
 * remote file system.
 */
int attacher__open(struct attacher *a, const struct mapping *m);
/*
 * Opens the debug file of an object (its descriptor) at an absolute path in a process's root (pid 0: in this
 * process's), for reading. -EPERM: users other than root and the object's owner could have written it or put it
 * there.
 */
int attacher__open_debug(struct attacher *a, u32 pid, const char *path, int object);
/*
 * Opens /tmp/perf-PID.map in the process's root, or in this process's if the process has ended; PID is the number in
 * the process's pid namespace. -EPERM: it is no regular file of the account that is responsible for the process, or of
 * root; -EFBIG: it is too large.
 */
int attacher__open_perf_map(struct attacher *a, u32 pid, u32 account);
/*
 * The text of a source file in a process's root, as attacher__maps(). built: see source_file__check(). -EACCES: the
 * process may not read it, or it is no such file; -ESTALE: its code is of another text; -EFBIG: it is too large.
 */
int attacher__source(struct attacher *a, u32 pid, const char *path, u64 built, char **out, size_t *len);
/* /proc/PID/maps; malloc'ed, with a NUL after the text. */
int attacher__maps(struct attacher *a, u32 pid, char **out, size_t *len);
/* The pids of all processes, a line each, in the same form. */
int attacher__processes(struct attacher *a, char **out, size_t *len);
/*
 * All output of an iterator's descriptor, in the same form. May take long, because the iterator waits for locks of the
 * processes that it visits.
 */
int attacher__read(struct attacher *a, int fd, char **out, size_t *len);
/*
 * The parts of its confinement (sandbox/privileges.h) that could not be set up, as text; "": none. Its children lack
 * the same.
 */
int attacher__lacks(struct attacher *a, char *out, size_t len);
/* The account that is responsible for a process (util/account.h). Returns 0 or negative errno. */
int attacher__user(struct attacher *a, u32 pid, u32 *uid);
int attacher__image(struct attacher *a, u32 pid, struct process_image *out);
/* Sets a key of a steering map, or deletes it if value is NULL; -EPERM: the attacher refuses the value. */
int attacher__map_set(struct attacher *a, const char *map, const void *key, const void *value, u64 flags);
/* Sends a signal to the process that sonde started. */
int attacher__signal(struct attacher *a, pid_t pid, int sig);

/* Returns the worker's end of the socket, which becomes readable when the attacher has ended. */
int attacher__fd(const struct attacher *a);
bool attacher__gone(const struct attacher *a);
/* The number of the first system call that its filter has refused; -1: none. */
int attacher__refused(const struct attacher *a);
/* It did not answer in time; its probes stay attached until the kernel lets it continue. */
bool attacher__stuck(const struct attacher *a);
/* Detaches what is left and waits for the attacher's end, 20 s at most and not if it is stuck. NULL-safe. */
void attacher__free(struct attacher *a);
