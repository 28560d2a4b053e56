/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mapped files with code. Shared by objects.c (which files there are) and attach.c (the probes in a file). */
#pragma once

#include "record/examine.h"
#include "record/internal.h"

struct objects {
	void *by_inode; /* tsearch: struct object by dev, ino */
	u16 last_id;
	u32 n, attached; /* number of all objects; of those with an id */
	u32 probed; /* those that are also mapped by a process */
	u64 again; /* bit by family id: its is_runtime is to be called again */
	u32 scan; /* number of the last scan for unmapped objects */
	u32 max, attached_max;
	u64 next_sweep;
	bool missed; /* mmap records were lost since the last scan of all processes */
	u64 next_scan; /* ns: earliest time of the next scan for lost records */
	u64 evicted, evicted_attached;
	u32 changes; /* how often probed files were overwritten in place since changed_from */
	u64 changed_from; /* ns */
};

struct object {
	u64 dev, ino; /* backing inode */
	u32 generation; /* of the inode number, because file systems reuse inode numbers */
	char *path; /* as seen by the first process that mapped it */
	u64 first, live; /* CLOCK_MONOTONIC ns; live 0: nothing is attached */
	u16 id; /* in the trace; 0: not probed */
	int watch; /* inotify watch of the file; 0: none */
	u32 pid; /* the process whose root the path refers to; 0: this process */
	u32 account; /* whose warnings those about it are */
	bool examined;
	bool pending; /* it is being examined (examine_pending.c) */
	bool debug_sought; /* a debug file was searched, and the result reported */
	bool remote; /* left out because it is on a remote file system */
	bool is_preattached; /* probed before any process mapped it */
	bool mapped; /* by a process, since it is live */
	bool unmapped; /* no process mapped it at the last scan */
	bool resting; /* left out until it has not been written to for a while */
	u32 changes; /* how often it was overwritten since changed_from */
	u64 changed_from; /* ns */
	u32 scan; /* number of the last scan that found it mapped */
	u64 used; /* ns: time of the last mapping */
	u64 families; /* bit by family id: families for which it is a runtime */
	u64 rejected; /* the same: families for which it is none, whatever their hints are */
	int fd; /* open for runtimes, else -1 */
	struct file_facts *facts; /* set for runtimes, else NULL */
};

/* The largest object id; larger numbers identify links of other kinds. */
#define OBJECT_ID_MAX 0x7fff

int object__compare(const void *a, const void *b);
void object__free(void *object);
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
void objects__hint(struct session *s, u8 family);
/*
 * Fills the mapping that a record describes. false: it is of no file (vdso, anonymous), or sonde's own: it maps a
 * library to find its backing inode.
 */
bool objects__mapping(const struct mmap_record *r, struct mapping *m);
/* Returns the object of a mapping; NULL: it is not known. */
struct object *objects__find(struct session *s, const struct mapping *m);
/* In preattach.c: a process has mapped the object. If not all of its probes were attached, counts the attach gap. */
void preattach__mapped(struct session *s, struct object *o, const struct mapping *m);
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
/* In recognize.c: reports that the object has the file name of the program's library, but is another one. */
void object__note_unlike(struct session *s, const struct object *o, const struct program *p, bool other_soname);
/* Returns a program that probes libraries with this file name; NULL: none does. */
const struct program *session__program_for(const struct session *s, const char *path);
/* Warns if the object has the name of a library that a family probes, but can't be examined. */
void object__refuse(struct session *s, const struct object *o, const char *why);
/* Returns whether the object has the name of a library that a family probes. */
bool object__is_probed_library(struct session *s, const struct object *o);
/*
 * In remote.c: notes that the object is on a remote file system (magic 0: an unknown one), and that a process maps such
 * a file.
 */
void remote__refuse(struct session *s, struct object *o, u32 magic);
void remote__note_process(struct session *s, const struct object *o, const struct mapping *m);
/* In hung.c: reports that the object's file system does not answer. */
void object__refuse_hung(struct session *s, const struct object *o, u32 uid);
