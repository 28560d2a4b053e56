/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mapped files with code, and the probes in them: which files there are, and what happens to each. */
#pragma once

#include "process/mmaps.h"
#include "record/examine/examine.h"
#include "record/tables.h"
#include "util/map.h"

struct program;

struct inode_key {
	u64 dev, ino; /* the backing inode */
	u64 generation; /* of the inode number, because file systems reuse inode numbers */
};

struct objects {
	struct map by_inode; /* struct inode_key: struct object */
	u16 last_id;
	u32 attached; /* number of objects with an id */
	u32 probed; /* those that are also mapped by a process */
	u64 hints; /* FAMILY_BIT of those whose is_runtime gets its hint */
	u64 again; /* the same of those whose is_runtime is to be called again */
	u32 scan; /* number of the last scan for unmapped objects */
	u32 max, attached_max;
	u64 next_sweep;
	bool missed; /* mmap records were lost since the last scan of all processes */
	u64 next_scan; /* ns: earliest time of the next scan for lost records */
	u64 evicted, evicted_attached;
	u32 changes; /* how often probed files were overwritten in place since changed_from */
	u64 changed_from; /* ns */
	int changed_fd; /* inotify: writes to probed files */
	u64 mappings_until; /* ns: mappings made until then are known; 0: those from before the traced time */
};

struct held_warning {
	char *text;
	bool is_lack; /* what was requested could not be attached */
	bool is_left_out; /* the text is why sonde leaves the file out, which is a loss, too */
};

struct object {
	struct inode_key key;
	char *path; /* as seen by the first process that mapped it */
	u64 first, live; /* CLOCK_MONOTONIC ns; live 0: nothing is attached */
	u16 id; /* in the trace; 0: not probed */
	int watch; /* inotify watch of the file; 0: none */
	u32 pid; /* the process whose root the path refers to; 0: this process */
	u32 account; /* whose warnings those about it are */
	bool examined;
	bool pending; /* it is being examined (pending.c) */
	bool debug_sought; /* a debug file was searched, and the result reported */
	bool remote; /* left out because it is on a remote file system */
	bool is_copied_up; /* see object__is_copied_up */
	bool is_preattached; /* probed before any process mapped it */
	bool mapped; /* by a process, since it is live */
	bool unmapped; /* no process mapped it at the last scan */
	bool is_wanted; /* a selected process maps it */
	bool resting; /* left out until it has not been written to for a while */
	u32 changes; /* how often it was overwritten since changed_from */
	u64 changed_from; /* ns */
	u32 scan; /* number of the last scan that found it mapped */
	u64 used; /* ns: time of the last mapping */
	u64 families; /* bit by family id: families for which it is a runtime */
	u64 rejected; /* the same: families for which it is none, whatever their hints are */
	int fd; /* open for runtimes, else -1 */
	struct file_facts *facts; /* set for runtimes, else NULL */
	struct held_warning *held; /* warnings for when a selected process maps it */
	u32 n_held;
};

int objects__new(struct session *s);
void objects__free(struct objects *o);
int objects__scan(struct session *s, u32 pid);
/* Probes a file on disk if a family probes libraries of its name; fd stays the caller's. */
int objects__preattach(struct session *s, const char *path, int fd);
void objects__follow(struct session *s);
/* Makes the worker scan all processes again. */
void objects__scan_soon(struct objects *o);
u32 objects__probed(const struct objects *o);
/*
 * Scans a process whose new files were not examined at once (shares.h) but may be now: they were mapped since
 * `since`.
 */
void objects__scan_late(struct session *s, u32 pid, u64 since);
/* Waits a moment for the files that take long to examine; those that take longer are probed while sonde traces. */
void objects__await(struct session *s);
/* Returns the time until which mappings are known, ns. */
u64 objects__known_until(const struct session *s);
/* Returns the path of the object with this id in the trace; NULL: there is none. */
const char *objects__path(const struct objects *o, u16 id);
/* In evict.c: called at each tick. */
void objects__tick(struct session *s, u64 now);
void objects__sizes(const struct objects *o, table_size_fn *fn, void *arg);
/* In missed.c: counts libraries that were mapped too late to be probed. Called when the traced time has ended. */
void missed__finish(struct session *s);
/* In changed.c: probed files that are overwritten in place. */
int changed__open(struct session *s);
void changed__poll(struct session *s);

/* The largest object id; larger numbers identify links of other kinds. */
#define OBJECT_ID_MAX 0x7fff

/* Frees what the object points to. */
void object__free(struct object *o);
/*
 * Probes an opened object at the sites that were found in its file, and writes its records; false: it is not a
 * runtime of any family.
 */
bool object__attach(struct session *s, struct object *o, const struct examination *x);
/* In objects.c: its file was examined with this result, for this mapping. Frees x. */
void object__examined(struct session *s, struct object *o, const struct mapping *m, struct examination *x, int err);
/* In file_facts.c: closes its file and drops the facts about it. */
void object__forget_file(struct object *o);
/*
 * Stores the facts of an examination, beside those of other families from earlier ones, and calls `object_examined`
 * of each family.
 */
void object__store_facts(struct session *s, struct object *o, const struct examination *x);
/*
 * objects.c: calls the family's is_runtime once more, soon and with its hint, for all mapped objects that it rejected.
 * They may have been examined before the object that led to the hint.
 */
void objects__hint(struct objects *o, u8 family);
/*
 * Fills the mapping that a record describes. false: it is of no file (vdso, anonymous), or sonde's own: it maps a
 * library to find its backing inode.
 */
bool objects__mapping(const struct mmap_record *r, struct mapping *m);
/*
 * On overlayfs a process may map a file of a lower layer that was copied to the upper one afterwards. A descriptor of
 * the mapping's file is then of the copy, another inode: probes in it do not concern this process.
 */
bool object__is_copied_up(struct session *s, const struct object *o);
/* Returns the object of a mapping; NULL: it is not known. */
struct object *objects__find(struct objects *o, const struct mapping *m);
/*
 * In missed.c: counts a mapping of a file that can't be examined, as its process has ended. If it probably was an
 * object that was mapped through an overlay, only its attach gap is counted.
 */
void missed__count_ended(struct session *s, const struct mapping *m);
/* Returns the iterator over all code mappings. */
const struct program *objects__vma_program(struct session *s);
/* In evict.c: sets the limits. */
void objects__bound(struct objects *o);
/* In changed.c: watches for writes to the object's file. */
void object__watch(struct session *s, struct object *o);
void object__unwatch(struct session *s, struct object *o);
/* An object that was overwritten repeatedly may be probed again once its file has not been written to for a while. */
void object__end_rest(struct object *o);
/*
 * In recognize.c: warns about the file, but not before a selected process maps it. is_lack: what was requested could
 * not be attached.
 */
void object__warn(struct session *s, struct object *o, bool is_lack, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same of a file that sonde leaves out: also counts a loss then. */
void object__leave_out(struct session *s, struct object *o, const char *why);
/* Notes that a selected process maps the file. */
void object__want(struct session *s, struct object *o);
/* Reports that the object has the file name of the program's library, but is another one. */
void object__note_unlike(struct session *s, struct object *o, const struct program *p, bool other_soname);
/* Returns a program that probes libraries with this file name; NULL: none does. */
const struct program *session__program_for(const struct session *s, const char *path);
/* Warns if the object has the name of a library that a family probes, but can't be examined. */
void object__refuse(struct session *s, struct object *o, const char *why);

/* In preattach.c: libraries on disk that no process maps yet. */
/* Creates the child process that searches for them, while this process has its privileges. */
void preattach__find(struct session *s);
/* Notes where a mapped file shows that a Python has its packages; the child searches there, too. */
void preattach__note(struct session *s, const char *path);
/* Lets the child begin, once the running processes have been scanned. */
void preattach__search(struct session *s);
/* Returns whether the next function does not have to wait for the child. */
bool preattach__is_ready(struct session *s);
/* Probes the next of them; s->preattach is NULL after the last. Waits for the child if necessary. */
void preattach__attach_next(struct session *s);
/* Waits for the child if it has ended. */
void preattach__reap(struct session *s);
/* A process has mapped the object. If not all of its probes were attached, counts the attach gap. */
void preattach__mapped(struct session *s, struct object *o, const struct mapping *m);
void preattach__free(struct session *s);

/* In remote.c: files that are left out because they are on remote file systems. */
/* Notes that the object is on a remote file system (magic 0: an unknown one). */
void remote__refuse(struct session *s, struct object *o, u32 magic);
/* Notes that a process maps such a file. */
void remote__note_process(struct session *s, const struct object *o, const struct mapping *m);
/* Prints a line about the files that were left out since the last line, if there are any. */
void remote__report(struct session *s);
void remote__free(struct session *s);
