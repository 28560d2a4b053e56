/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's side of a family, bpf/probes/FAMILY/FAMILY.c, for what a section
 * name can't say: where in a binary its SITE programs go, tracepoints that are
 * attached only while they are needed, state of each process that BPF needs.
 * Most families have none.
 */
#ifndef SONDE_RECORD_FAMILY_H
#define SONDE_RECORD_FAMILY_H

#include <stdio.h>

#include "core/event.h"
#include "elf/elf.h"
#include "process/process.h"
#include "record/tables.h"

struct session;
struct native;
struct file_facts;

struct site {
	u64 offset; /* in the file */
	const char *program; /* the BPF program to run there, by function name */
	u64 cookie; /* what the program gets beside the probe's number: nothing in its lowest 16 bits */
	u64 counter; /* offset in the file of the USDT semaphore to be raised meanwhile, 0: none */
};

struct site_list {
	struct site *sites;
	u32 n;
};

/* 0 or -ENOMEM */
int site_list__add(struct site_list *list, u64 offset, const char *program);
int site_list__add_site(struct site_list *list, const struct site *site);

/* What a recording lacks where the kernel refuses a program of the family's. */
struct family_part {
	const char *programs; /* by name, a glob; the first part that matches counts */
	const char *lacks; /* "who woke a thread" */
	bool all; /* the family records nothing without it */
};

#define FAMILY_PART(names, text)                     \
	{                                            \
		.programs = (names), .lacks = (text) \
	}
#define FAMILY_WHOLE(names)                      \
	{                                        \
		.programs = (names), .all = true \
	}
#define FAMILY_PARTS_END         \
	{                        \
		.programs = NULL \
	}

struct family_host {
	const char *name; /* the family's */
	/*
	 * Up to an entry without programs; NULL: none is described. Calls need no entry, their functions are
	 * named, nor does a program whose tracepoint's name says what it shows.
	 */
	const struct family_part *parts;
	/* Its programs walk Python stacks (core/python.bpf.h); its `mapped` calls python__mapped(). */
	bool python;
	/*
	 * They do so with this option alone (core/at_call.bpf.h); NULL: with none. CPythons are then found and passed to BPF
	 * without the family's help.
	 */
	const char *python_option;
	/* It asks session__native() for stacks: mappings are kept from the start on, so that processes may end. */
	bool native;
	/*
	 * These three, with `sites` and `learn`, look into a file that the target's user may have written. In a recording they run in a
	 * child process without privileges (record/examine.h): what they change in memory is lost, and of the session they
	 * may ask for options and test switches alone.
	 *
	 * Is this object a runtime that the family traces? Asked once an object, before sites; NULL: by file name of its probes alone.
	 */
	bool (*is_runtime)(struct elf *elf, const char *path);
	/*
	 * For a stripped object that neither its name nor its symbols identify: is a library that
	 * the family probes linked into it? Then why (of size len) says what will not be seen.
	 */
	bool (*hides_library)(struct elf *elf, char *why, size_t len);
	/*
	 * For `sonde doctor`, asked of what is_runtime said yes to: what it is ("CPython 3.11.2") and how it is traced, or
	 * why it is not. false: nothing to report. NULL: its file name says enough.
	 */
	bool (*describe)(struct elf *elf, const char *path, char *what, size_t what_len, char *how, size_t how_len);
	/*
	 * Fills the places of the family's SITE programs in an object for which
	 * is_runtime said yes. What can't be placed is said in why (of size len), "" if
	 * all could. 0 or negative errno. s is NULL for `sonde list probes --resolve`,
	 * where nothing is recorded.
	 */
	int (*sites)(struct session *s, struct elf *elf, const char *path, struct site_list *out, char *why,
		     size_t len);
	/* Fills what the family needs to know of such an object (FAMILY_FACTS_MAX bytes, zeroed), after sites. */
	void (*learn)(struct elf *elf, void *own);
	/* is_runtime, sites and learn depend on it; it is set as the recording has it when they are called. NULL: on none */
	bool *hint;
	/* What was learned of an object, which is a claim of its file, when it has been examined. */
	void (*found)(struct session *s, const void *own);
	/* Once, before any of those below; what the family keeps of a recording is zeroed then. NULL: nothing to do */
	void (*begin)(struct session *s);
	/*
	 * An iterator program that begins to follow threads which exist already. It is run of all threads behind `begin`, of
	 * a process that a filter selects later, and, where the family has is_runtime and no option `all`, of a process that
	 * maps such an object: once a process and tick. NULL: none
	 */
	const char *follows;
	/* Only with this number of the family's, `--FAMILY-NUMBER`; NULL: always */
	const char *follows_with;
	/* Bytes of what the family keeps of a recording: session__state(). `end` frees what that points to. */
	size_t state;
	void (*end)(struct session *s);
	/* false: the recording does without this program of the family's; NULL: it needs all. Asked before loading. */
	bool (*wants_program)(struct session *s, const char *program);
	/* Before tracepoints are attached and while this process has its privileges: it may set maps. It must read nothing foreign. */
	void (*prepare)(struct session *s);
	/*
	 * A process maps such an object (also one that had mapped it before tracing began). own: what `learn` has filled. Without
	 * is_runtime: any object, and both are NULL.
	 */
	void (*mapped)(struct session *s, struct file_facts *file, const void *own, const struct mapping *m);
	/*
	 * A process was selected by a filter: its threads are older. Its mappings follow, by mapped(). pid 0:
	 * several were, examine all.
	 */
	void (*joined)(struct session *s, u32 pid);
	/* The loader drains one of the family's records, or a raw one of its own (bpf/core/stack.h). */
	void (*event)(struct session *s, const struct event *e, u32 size);
	/* About every 100 ms, or tick_ns where that is more; now is CLOCK_MONOTONIC ns. */
	void (*tick)(struct session *s, u64 now);
	u64 tick_ns;
	/* The sizes of what its host code keeps of processes, threads and the like; NULL: it keeps nothing. */
	void (*sizes)(const struct session *s, table_size_fn *fn, void *arg);
	/* session__pause and session__resume will be called: it has no return probes. */
	bool slices;
	/*
	 * Tracing is about to stop, the probes are still there: asked again and again, for 3 s at most, until no
	 * family says that something is still to come.
	 */
	bool (*stopping)(struct session *s);
};

#define FAMILY_HOST(ident)                                                     \
	static const struct family_host ident;                                 \
	static const struct family_host *const ident##_entry                   \
		__attribute__((used, section("sonde_family_hosts"))) = &ident; \
	static const struct family_host ident

/* Does the family, which is on, walk Python stacks because of its option? h may be NULL. */
bool family_host__python_asked(struct session *s, const struct family_host *h);
/* The host's side of a family by its name, NULL: it has none. */
const struct family_host *family_host__find(const char *name);

/* What a family keeps of this recording, by the family's id. */
void *session__state(const struct session *s, u8 family);
/* CLOCK_MONOTONIC as BPF sees it, ns. */
u64 session__now(const struct session *s);
/* The trace's id of a text, for fields of unit `string`. */
u32 session__intern(struct session *s, const char *text);
/* --no-args: command lines and paths stay out of the trace. */
bool session__no_args(const struct session *s);
/* What may be written of a path: all of it, with --no-args its last part. */
const char *session__path(const struct session *s, const char *path);
/* Writes a record made in user space; its header must be filled. */
int session__emit(struct session *s, const void *record, u32 size);
/* Runs an iterator program and writes the records that it hands over (iter__write). */
int session__run_iter(struct session *s, const char *program);
/* Of one process's tasks alone; pid 0: of all. */
int session__run_iter_of(struct session *s, const char *program, u32 pid);
/*
 * How often all rings were read to their end. A record that a process sent before a call of this has been given to
 * .event once a later call returns more.
 */
u64 session__drained(const struct session *s);
/* Is the process selected? */
bool session__wants(const struct session *s, u32 pid);

/*
 * Asks the family's is_runtime again of all mapped objects that it said no to, soon:
 * it has learned that one of them matters.
 */
void session__look_again(struct session *s, const char *family);

/*
 * Programs whose section begins with '?' are attached and detached by their family alone: tracepoints, and
 * programs of section perf_event, which run at each major page fault. 0 or negative errno.
 */
int session__attach(struct session *s, const char *program);
void session__detach(struct session *s, const char *program);
/* A program of section clock/cpu, on each CPU hz times a second, to the end of the recording. */
int session__attach_clock(struct session *s, const char *program, u32 hz);
/* Takes the probes of a family with .slices off all objects, which takes some 50 ms, and puts them on again. */
int session__pause(struct session *s, const char *family);
int session__resume(struct session *s, const char *family);
/* -ESRCH: it is gone. */
int session__image(struct session *s, u32 pid, struct process_image *out);
/* /proc/PID/maps, to be read; NULL: it can't be. */
FILE *session__maps(struct session *s, u32 pid);
/* The function at an offset of an open file, by its symbols: its name ("": none says), and where it begins. 0 or negative errno. */
int session__symbol(struct session *s, int fd, const char *path, u64 offset, char *name, size_t len, u64 *begins);
/* Has a child process read DWARF of an object that is mapped, see dwarf_job__start. */
struct dwarf_job;
struct dwarf_member;
int session__start_dwarf(struct session *s, struct dwarf_job *job, const struct mapping *m, const char *type,
			 const struct dwarf_member *members, u32 n);
/* A descriptor of the file behind a mapping (only of ELF files), or negative errno. */
int session__open_mapped(struct session *s, const struct mapping *m);
/* Native stacks (record/native.h); NULL: no memory. */
struct native *session__native(struct session *s);
/* Says something at the terminal; no more than a few times a recording. */
void session__warn(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A file is left out because of what it takes, once a file: counted as a loss, and the first ones are named. */
void session__gave_up(struct session *s, const char *path, const char *why);
/* Records that are missing, in family's name, now */
void session__lost(struct session *s, const char *family, u32 reason, u64 count);
/*
 * A BPF map of the object by name: its descriptor, or -ENOENT. From the start on it can be read if maps.c lists it,
 * and be written by nothing but the next function.
 */
int session__map_fd(struct session *s, const char *map);
/* Sets a key of a map that is declared by STEERING (attach/steering.h); value NULL: deletes it. 0 or negative errno. */
int session__map_set(struct session *s, const char *map, const void *key, const void *value, u64 flags);
/*
 * Sets a process's value in a map keyed by tgid, out of which BPF takes processes that end: not if it has ended already,
 * as nothing would take it out then. 0 or negative errno.
 */
int session__set_process(struct session *s, const char *map, u32 pid, const void *value);
/* Has the process or thread ended? A process has not before its parent has waited for it. */
bool session__has_ended(u32 tid);
/*
 * Puts a SITE program on places of a mapped file for one process, each with a word of 2 bytes in the file's data that
 * the kernel raises in that process as long as the probe is there (counters; all three arrays are of n, offsets in the
 * file). object: by which session__unlink_process takes all of them off; not one of the trace's (16 bits). 0 or negative errno.
 */
int session__link_process(struct session *s, const char *program, const struct mapping *m, const u64 *offsets,
			  const u64 *counters, u32 n, u32 object);
void session__unlink_process(struct session *s, u32 object);
/* Is a test switch on (environment SONDE_TEST, a comma-separated list)? Hides features so that fallbacks are tested. */
bool session__test_switch(const char *word);
/* Was --FAMILY=OPTION given? */
bool session__option(struct session *s, const char *family, const char *word);
/* What --FAMILY-WORD was given, 0: it was not */
u64 session__number(struct session *s, const char *family, const char *word);

/*
 * For `mapped` of the families that walk Python stacks: if the file is a CPython, its processes' stacks can be walked from
 * here on. What can't be walked is said. May be called by several families for one mapping.
 */
void python__mapped(struct session *s, struct file_facts *file, const struct mapping *m);
/* What the process adds to the file's addresses. 0 or -ENOENT. */
int mapping__bias(const struct file_facts *file, const struct mapping *m, u64 *bias);

/* CPython or a CUDA library: an is_runtime for families that follow processes with one, whatever other families are on. */
bool runtime__is_one(struct elf *elf, const char *path);
#endif
