/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host code of a family, bpf/probes/FAMILY/FAMILY.c, for everything that a section name can't express: the sites
 * of its SITE programs in a binary, tracepoints that are attached only while they are needed, facts about each
 * process for the BPF programs. Most families have no host code.
 */
#pragma once

#include <stdio.h>

#include "core/event.h"
#include "elf/elf.h"
#include "process/process.h"
#include "record/active.h"
#include "record/meter.h"
#include "record/tables.h"
#include "util/registry.h"

struct session;
struct step_schedule;
struct capture_range;
struct native_stack;
struct file_facts;
struct placer;
struct place_site;
struct python_program;

struct site {
	u64 offset; /* in the file */
	const char *program; /* the BPF program to run there, by the name of its function */
	u64 cookie; /* for the program, beside the probe's number: the lowest 16 bits must be 0 */
	u64 counter; /* file offset of the USDT semaphore that the kernel increments meanwhile; 0: none */
	u32 name; /* what site_list__name() returned for the name of its probe; 0: the name of the program's site */
};

struct site_list {
	struct site *sites;
	u32 n;
	char **names;
	u32 n_names;
};

#define FAMILY_FACTS_MAX 192 /* bytes of a family's facts about a file */

/*
 * From family_host.sites: the object can be traced only together with another one, which is_runtime knows by its hint.
 */
#define SITES_HINT 1
/* The file has nothing that could be probed, as `why` says, and so nothing is lost. */
#define SITES_NONE 2

/* Returns 0 or -ENOMEM. */
int site_list__add(struct site_list *list, u64 offset, const char *program);
int site_list__add_site(struct site_list *list, const struct site *site);
/* Adds the name of a probe, for `name` of its sites. Returns its number, or 0: no memory. */
u32 site_list__name(struct site_list *list, const char *name);
/*
 * Adds the entry and all ends of a function's calls (docs/placement.md), for a SITE program that calls
 * placed__close() at the ends. `like` has the program, the name and the entry's cookie. *why: why the function can't be
 * traced, and nothing was added; NULL: it can. Returns 0 or negative errno.
 */
int site_list__add_placed(struct site_list *list, struct elf *elf, struct placer *placer,
			  const struct elf_symbol *function, const struct site *like, const char **why);
/* The bits of the cookie that distinguish this site of a placed call. */
u64 site_list__placed_cookie(const struct place_site *site);
void site_list__free(struct site_list *list);

/* Asyncio tasks of a process that waited in the same coroutines when they were read (record/stacks/tasks.h). */
struct task_waits {
	u32 pid;
	u64 time, period; /* ns: of the reading, and since the one before */
	u64 object; /* whose method the innermost coroutine runs */
	u32 stack, holder, last; /* ids in the trace, 0: none */
	u64 peer_high, peer_low;
	u16 peer_port;
	u32 tasks, begun, all; /* as in event sample_tasks */
	bool serves; /* the outermost coroutine got a stream */
};

/* What a recording lacks if the kernel refuses a program of the family. */
struct family_part {
	const char *programs; /* names of programs, as a glob; the first part that matches counts */
	const char *lacks; /* "which thread woke another" */
	bool is_whole_family; /* the family records nothing without it */
	bool is_optional; /* nothing is lacking if the kernel has no such tracepoint */
};

#define FAMILY_PART(names, text)                     \
	{                                            \
		.programs = (names), .lacks = (text) \
	}
#define FAMILY_WHOLE(names)                                  \
	{                                                    \
		.programs = (names), .is_whole_family = true \
	}
#define FAMILY_PARTS_END         \
	{                        \
		.programs = NULL \
	}

struct family_host {
	const char *name; /* the family's name */
	/*
	 * Ends with an entry without programs; NULL: no part is described. No entry is needed for calls, whose
	 * functions are named, and for programs whose tracepoint's name says enough.
	 */
	const struct family_part *parts;
	/* Its programs walk Python stacks (core/python.bpf.h). Its runtimes are passed to BPF before object_mapped. */
	bool python;
	/*
	 * The option with which its programs walk Python stacks (core/at_call.bpf.h); NULL: without any option.
	 * CPythons are then found and passed to BPF without the family's help.
	 */
	const char *python_option;
	/* It calls session__native_stack(): mappings are then stored from the start, because processes may end. */
	bool native;
	/*
	 * The next three functions and `sites` parse a file that the target's user may have written. In a recording
	 * they run in a child process without privileges (record/examine/examine.h): their changes to memory are lost,
	 * and of the session they may only read options and test switches.
	 *
	 * Returns whether this object is a runtime that the family traces. Called once per object, before sites, and
	 * again with the hint for objects that it rejected, when `sites` has returned SITES_HINT for another one. NULL:
	 * only the file names of its probes count.
	 */
	bool (*is_runtime)(struct elf *elf, const char *path, bool hint);
	/*
	 * For a stripped object that neither its name nor its symbols identify: returns whether a library that the
	 * family probes is linked into it. Then why (of size len) is set to what will not be recorded.
	 */
	bool (*hides_library)(struct elf *elf, char *why, size_t len);
	/* The family that records what such an object does: its user is not warned if this family probes an object. */
	const char *covered_by;
	/*
	 * For `sonde doctor`, called if is_runtime returned true: writes what the file is ("CPython 3.11.2") and how it
	 * is traced, or why it is not. false: nothing to report. NULL: the file name says enough.
	 */
	bool (*describe)(struct elf *elf, const char *path, char *what, size_t what_len, char *how, size_t how_len);
	/*
	 * Finds the sites of the family's SITE programs in an object that is_runtime accepted, and fills *facts
	 * (FAMILY_FACTS_MAX bytes, zeroed) with the family's facts about it. why (of size len): what can't be probed,
	 * "" if all can. 0, SITES_HINT, SITES_NONE or negative errno. s is NULL for `sonde list probes --resolve`,
	 * which records nothing.
	 */
	int (*sites)(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out,
		     char *why, size_t len);
	/* Called with the facts that `sites` filled in, which are untrusted, when an object has been examined. */
	void (*object_examined)(struct session *s, const void *facts);
	/* Bytes of the family's state in a recording, zeroed: session__state(). `end` frees what it points to. */
	size_t state;
	void (*end)(struct session *s);
	/* Called once, before any function below. NULL: nothing to do */
	void (*begin)(struct session *s);
	/*
	 * The iterator program that begins to follow existing threads. It runs over all threads after `begin`, over
	 * those of a process that a filter selects later, and, if the family has is_runtime and no option `all`, over
	 * those of a process that maps such an object: once per process and tick. NULL: none
	 */
	const char *follow_iterator;
	/*
	 * The iterator program whose first run, when tracing begins, reads what its later ones are compared with. NULL:
	 * none. Others may still be loaded by then, and are not run.
	 */
	const char *baseline;
	/* follow_iterator runs only if this number, `--FAMILY-NUMBER`, is given; NULL: always */
	const char *follows_with;
	/* Of the threads that it follows, it names the files that they wait for (bpf/core/file.bpf.h). */
	bool names_files;
	/* The values that its option with a number may have; name NULL: any */
	struct {
		const char *name;
		u64 min, max;
	} range;
	/* Returns whether the recording needs this program of the family; NULL: it needs all. Called before loading. */
	bool (*needs_program)(struct session *s, const char *program);
	/* Called before loading: sets variables of its programs by session__set_variable(). 0 or negative errno. */
	int (*configure)(struct session *s);
	/*
	 * Called before tracepoints are attached and while this process has its privileges: it may set maps, and must
	 * read nothing untrusted.
	 */
	void (*prepare)(struct session *s);
	/*
	 * Called when a process maps such an object, also for mappings from before tracing began. facts: what `sites`
	 * filled in. Without is_runtime: called for any object, and file and facts are NULL.
	 */
	void (*object_mapped)(struct session *s, struct file_facts *file, const void *facts, const struct mapping *m);
	/*
	 * Called when a filter has selected a process, whose threads are older. object_mapped() follows for its
	 * mappings. pid 0: several were selected, examine all.
	 */
	void (*process_selected)(struct session *s, u32 pid);
	/*
	 * Called before a record of a program is written, which it may change. Returns false if the record is to be
	 * discarded. NULL: all are written as they are
	 */
	bool (*cut)(struct session *s, struct event *e, u32 size);
	/* Called for each of the family's records, and for its own raw records (bpf/core/stack.h). */
	void (*event)(struct session *s, const struct event *e, u32 size);
	/* Called about every 100 ms, or tick_ns if that is more; now is CLOCK_MONOTONIC ns. */
	void (*tick)(struct session *s, u64 now);
	u64 tick_ns;
	/* Called for each group of tasks of a reading; tasks are read if `follows` runs. NULL: not needed */
	void (*tasks)(struct session *s, const struct task_waits *w);
	/*
	 * Called with the name that Python gave a thread. Its tid is the one in the process's own pid namespace. NULL:
	 * not needed
	 */
	void (*thread_name)(struct session *s, u32 pid, u32 own_tid, const char *name);
	/* Called with what a process runs, once that is known. NULL: not needed */
	void (*python_program)(struct session *s, u32 pid, const struct python_program *p);
	/*
	 * Called with each GIL of a process that has several: the address of its condition, and Python's number of the
	 * interpreter. NULL: not needed
	 */
	void (*python_gil)(struct session *s, u32 pid, u64 gil, u64 interpreter);
	/* Reports the sizes of its tables of processes, threads and the like; NULL: it has none. */
	void (*sizes)(const struct session *s, table_size_fn *fn, void *arg);
	/* Its probes are detached and attached again while the recording continues. It has no return probes. */
	bool detaches;
	/* The same, at a request of `sonde control --trace`. */
	bool toggles;
	/* Of these programs probes stay attached meanwhile; NULL: of none. */
	bool (*stays_attached)(const char *program);
	/*
	 * The family's probes are detached while the recording is suspended. This is called with true before they are
	 * detached, and with false after they were attached again.
	 */
	void (*set_suspended)(struct session *s, bool suspend);
	/*
	 * Programs that are detached between slices of time, to limit the family's cost (record/attach/slices.c). The
	 * names end with NULL; NULL: the family is not limited. .open_iterator: the iterator that writes what is open
	 * when a slice ends.
	 */
	const char *const *sliced;
	const char *open_iterator;
	/* Called at the end of such a slice with false, and at the start of the next with true. NULL: not needed */
	void (*set_slice)(struct session *s, bool measures);
	/*
	 * Called before tracing stops, while the probes are attached: repeatedly, for at most 3 s, until no family
	 * returns true, which means that more records are to come.
	 */
	bool (*has_more_records)(struct session *s);
};

#define FAMILY_HOST(ident) REGISTER(family_host, sonde_family_hosts, ident)

/* Returns whether the family, which is on, walks Python stacks because of its option. h may be NULL. */
bool family_host__python_requested(struct session *s, const struct family_host *h);
/* Returns whether the family follows threads in this recording. */
bool family_host__follows(struct session *s, const struct family_host *h);
/* Returns the host code of a family by its name; NULL: it has none. */
const struct family_host *family_host__find(const char *name);

/* Returns the state of a family in this recording, by the family's id. */
void *session__state(const struct session *s, u8 family);
/* Returns the ns that a probe of an entry takes on this machine with an empty program; 0: not measured. */
u64 session__trap_ns(const struct session *s);
/* Returns CLOCK_MONOTONIC as BPF programs read it, ns. */
u64 session__now(const struct session *s);
/* Returns the id of a text in the trace, for fields of unit `string`. */
u32 session__intern(struct session *s, const char *text);
/* --no-args: leave command lines and paths out of the trace. */
bool session__no_args(const struct session *s);
/* Returns the part of a path that may be written: all of it, or with --no-args its last component. */
const char *session__path(const struct session *s, const char *path);
/* Returns the header, with the time, of a record of this kind that is made in user space. */
struct event session__event(const struct session *s, u16 id);
/* Writes such a record. */
int session__emit(struct session *s, const void *record, u32 size);
/* Runs an iterator program over the tasks of a process (0: of all), and writes the records that it emits. */
int session__run_iter(struct session *s, const char *program, u32 pid);
/*
 * Returns how often all rings were read to their end. A record that a process emitted before a call of this function
 * has been passed to .event once a later call returns a higher number.
 */
u64 session__drained(const struct session *s);
/* Returns whether a filter selects processes. */
bool session__has_filter(const struct session *s);
/* Returns whether the process is selected. */
bool session__selects(const struct session *s, u32 pid);
/* Where no filter selects processes: families that follow the threads of runtimes follow those of this process, too. */
void session__follow(struct session *s, u32 pid);

/*
 * Programs whose section begins with '?' are attached and detached only by their family: tracepoints, and programs of
 * section perf_event, which run at each major page fault. Returns 0 or negative errno.
 */
int session__attach(struct session *s, const char *program);
void session__detach(struct session *s, const char *program);
/* Attaches a program of section clock/cpu on each CPU, hz times a second, until the end of the recording. */
int session__attach_clock(struct session *s, const char *program, u32 hz);
/*
 * Suspends or resumes the recording. While it is suspended, expensive probes are detached and records of targets are
 * discarded; session__begin_pause and session__end_pause write the times (CLOCK_MONOTONIC ns) to the trace.
 */
void session__set_suspended(struct session *s, bool suspend);
void session__begin_pause(struct session *s, u64 time);
void session__end_pause(struct session *s, u64 time);
/* Writes the pause that is open, if there is one, as far as it is known: a trace that is cut off has that. */
void session__write_pause(struct session *s, u64 until);
/* The arguments --schedule and --step; NULL: not given. */
const struct step_schedule *session__schedule(const struct session *s);
const char *session__step(const struct session *s);
/* The arguments of --capture-range, and of --step if it names ranges of NVTX; NULL: not given. */
const struct capture_range *session__capture(const struct session *s);
const struct capture_range *session__step_range(const struct session *s);
/* Returns whether the recording runs a command of its own, whose processes it sees from their start. */
bool session__has_command(const struct session *s);
/* The schedule is over in all processes that have begun it. */
void session__end_schedule(struct session *s);
/* Detaches the probes of a family with .detaches from all objects, which takes about 50 ms, and attaches them again. */
int session__detach_family(struct session *s, const char *family);
int session__attach_family(struct session *s, const char *family);
/* Does it take these 50 ms for each site? Before Linux 6.6 each has a perf event. */
bool session__detaches_slowly(const struct session *s);
/*
 * For --cost-limit: adds ns for which a followed thread was on a CPU, and ns that the programs took which slices limit.
 */
void session__add_probing(struct session *s, u64 run_ns, u64 cost_ns);
/* -ESRCH: the process has ended. */
int session__image(struct session *s, u32 pid, struct process_image *out);
/* The account of a process (util/account.h); ~0: it has ended. */
u32 session__user(struct session *s, u32 pid);
/* May the trace name this process, which it need not record? Not that of another user with --scope user. */
bool session__may_name(struct session *s, u32 pid);
/* Opens /proc/PID/maps for reading; NULL: failed. */
FILE *session__maps(struct session *s, u32 pid);
/*
 * Finds the function at an offset of an open file, by its symbols: its name ("": unknown) and its start. Returns 0 or
 * negative errno.
 */
int session__symbol(struct session *s, int fd, const char *path, u64 offset, char *name, size_t len, u64 *begins);
/* Makes a child process read DWARF of a mapped object, see dwarf_job__start. */
struct dwarf_job;
struct dwarf_member;
int session__start_dwarf(struct session *s, struct dwarf_job *job, const struct mapping *m, const char *type,
			 const struct dwarf_member *members, u32 n);
/* A descriptor of the file behind a mapping (only of ELF files), or negative errno. */
int session__open_mapped(struct session *s, const struct mapping *m);
/* A thread's native stack, as a program of the family read it (core/native.h). */
struct native_thread {
	const struct native_stack *raw;
	u32 size; /* number of bytes received */
	u32 pid, parent; /* the parent's mappings are used for a process that ended at once */
	u64 time; /* ns */
	u32 python; /* the Python stack below the newest native frames; 0: none */
};
/* Returns the trace's id of the whole stack, or t->python if there are no native frames. */
u32 session__native_stack(struct session *s, const struct native_thread *t);
/* A thread has the number own_tid in its process's own pid namespace. */
void session__note_own_tid(struct session *s, u32 pid, u32 tid, u32 own_tid);
/* Returns the kernel's number of that thread; own_tid if it has no other. */
u32 session__tid_of(struct session *s, u32 pid, u32 own_tid);
/* A `cut` of families whose records have the threads' own numbers (EVENT_OWN_TID). Always returns true. */
bool session__translate_tid(struct session *s, struct event *e, u32 size);
/* Prints a warning. */
void session__warn(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Prints a warning about an account's file or process. An account can cause as many as it likes, so further ones than
 * its first are only counted, in one line at the end (record/discover/shares.c).
 */
void session__warn_of(struct session *s, u32 account, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reports that an account's file is left out because it needs too much memory or time, and counts a loss. */
void session__left_out(struct session *s, const char *path, u32 account, const char *why);
/* Counts lost records of a family, now. */
void session__lost(struct session *s, const char *family, u32 reason, u64 count);
/*
 * The descriptor of a BPF map of the object by name, or -ENOENT. After the start a map can be read if maps.c lists
 * it, and written only by the next function.
 */
int session__map_fd(struct session *s, const char *map);
/*
 * Sets a key of a map that is declared by STEERING (attach/steering.h), or deletes it if value is NULL. Returns 0 or
 * negative errno.
 */
int session__map_set(struct session *s, const char *map, const void *key, const void *value, u64 flags);
/*
 * Sets a process's value in a map keyed by tgid, from which BPF deletes processes that end: not if the process has
 * ended already, because the entry would never be deleted. Returns 0 or negative errno.
 */
int session__set_process(struct session *s, const char *map, u32 pid, const void *value);
/* Returns whether the process or thread has ended. A process has ended once its parent has waited for it. */
bool session__has_ended(u32 tid);
/*
 * Attaches a SITE program to sites of a mapped file, for one process only, each with a semaphore in the file's data
 * that the kernel increments in that process while the probe is attached (counters; all three arrays have n elements,
 * offsets in the file). object: number by which session__unlink_process detaches all of them; not one of the trace's
 * objects (16 bits). Returns 0 or negative errno.
 */
int session__link_process(struct session *s, const char *program, const struct mapping *m, const u64 *offsets,
			  const u64 *counters, u32 n, u32 object);
void session__unlink_process(struct session *s, u32 object);
/* Returns whether a test switch is on (SONDE_TEST, a comma-separated list), which tests disable features with. */
bool session__test_switch(const char *item);
/* Sets a `const volatile` variable of the BPF programs, before they are loaded. 0 or negative errno. */
int session__set_variable(struct session *s, const char *name, const void *value, size_t size);
/* Returns whether --FAMILY=OPTION was given. */
bool session__option(struct session *s, const char *family, const char *option);
/* Returns the number of --FAMILY-WORD; 0: it was not given. */
u64 session__number(struct session *s, const char *family, const char *option);

/* For families whose records are made by the shim in targets (core/shim.h, record/shims.c) */

/*
 * The layout of a kind's event: what precedes the record's body, the known size of the body, and whether a text
 * follows. Without a text together with its head at most RECORD_MAX bytes, with one SHIM_RECORD_MAX less than that.
 */
struct shim_form {
	u16 head, body;
	bool text;
};

#define FORM_SPAN(type)	 sizeof(struct span), sizeof(struct type), false
#define FORM_EVENT(type) sizeof(struct event), sizeof(struct type), false
#define FORM_TEXT(type)	 sizeof(struct event), sizeof(struct type), true
/* The body is what follows the header of an event. */
#define FORM_REST(type, header) sizeof(struct header), sizeof(struct type) - sizeof(struct header), false
#define SHIM_FORMS(list)	.forms = (list), .n_forms = sizeof(list) / sizeof(*(list))

struct shim_user {
	const char *family;
	const char *control; /* its program at the control functions, which never runs */
	const struct shim_form *forms; /* by kind of record; without a body: there is no such kind */
	u32 n_forms;
	u16 state; /* id of its event that has a struct shim_state and a text behind its header */
	/* The process ended while it was active: what it had not handed over yet is lost. NULL: as `dropped` says */
	void (*ended)(struct session *s, u32 pid);
	u16 dropped; /* id of its event that begins with a struct shim_lost */
	u32 ended_reason; /* shim_lost.reason of that loss */
};
/* What the host code of such a family has beside its own functions and `parts`. */
#define SHIM_HOST                                                                                          \
	.prepare = session__prepare_shims, .is_runtime = shim_user__is_runtime, .sites = shim_user__sites, \
	.tick = shim_user__tick, .has_more_records = shim_user__has_more
void session__prepare_shims(struct session *s);
bool shim_user__is_runtime(struct elf *elf, const char *path, bool hint);
/* Are these the facts of a shim's file? */
bool shim_user__has_sites(const void *facts);
/* Fills the facts of a shim's file but lists no sites: they are probed separately in each process. */
int shim_user__sites(struct session *s, struct elf *elf, const char *path, void *facts, struct site_list *out,
		     char *why, size_t len);
void shim_user__tick(struct session *s, u64 now);
bool shim_user__has_more(struct session *s);
void shim_user__sizes(const struct session *s, table_size_fn *fn, void *arg);
/* Requests groups of records (bits by enum shim_group) from a process that maps the shim. */
void session__request_records(struct session *s, const struct shim_user *user, const void *facts,
			      const struct mapping *m, u32 groups);
/*
 * To be called for each record of the family: makes events of the batches of the shims, and notes the states that they
 * report.
 */
void session__note_shim(struct session *s, const struct shim_user *user, const struct event *e, u32 size);
/* Copies a text of `size` bytes that a shim has passed, without characters that control a terminal. */
void shim_user__copy_text(char *to, size_t len, const char *text, u32 size);

/* Gets the load bias: the difference between addresses in the process and in the file. Returns 0 or -ENOENT. */
int mapping__bias(const struct file_facts *file, const struct mapping *m, u64 *bias);

/*
 * An is_runtime for families that follow processes with CPython or a CUDA library, independent of which other families
 * are on.
 */
bool runtime__is_one(struct elf *elf, const char *path, bool hint);
