/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A mapped file with code. Shared by objects.c (which files there are) and attach.c (probes in one). */
#ifndef SONDE_RECORD_OBJECTS_H
#define SONDE_RECORD_OBJECTS_H

#include "record/examine.h"
#include "record/internal.h"

struct objects {
	void *by_inode; /* tsearch: struct object by dev, ino */
	u16 last_id;
	u32 n, attached; /* all; those with an id */
	u32 probed; /* and mapped by a process */
	u32 again; /* bit by family id: it wants to be asked once more */
	u32 scan; /* number of the last scan for those that no process maps */
	u32 max, attached_max;
	u64 next_sweep;
	bool missed; /* mmap records were lost since the last scan of all processes */
	u64 next_scan; /* ns: before that none is made for it */
	u64 evicted, evicted_attached;
	u32 changes; /* probed files that were overwritten in place since changed_from, each time */
	u64 changed_from; /* ns */
};

struct object {
	u64 dev, ino; /* backing inode */
	u32 generation; /* of that inode number: file systems reuse them */
	char *path; /* as the first process that mapped it sees it */
	u64 first, live; /* CLOCK_MONOTONIC ns; live 0: nothing attached */
	u16 id; /* in the trace, 0: not probed */
	int watch; /* by which a write to the file is reported; 0: none */
	u32 pid; /* the process in whose root the path is, 0: this process */
	bool examined;
	bool debug_sought; /* and what came of it reported */
	bool remote; /* left out, as it lies on a file system that is served remotely */
	bool is_preattached; /* probed before any process mapped it */
	bool mapped; /* by a process, since it is live */
	bool unmapped; /* no process mapped it at the last scan */
	bool resting; /* it is left out until it is not written to for a while */
	u32 changes; /* how often it was overwritten since changed_from */
	u64 changed_from; /* ns */
	u32 scan; /* number of the last scan that met it */
	u64 used; /* ns: when a mapping was last seen */
	u32 families; /* bit by family id: those for which it is a runtime */
	int fd; /* kept for runtimes, else -1 */
	struct file_facts *facts; /* likewise */
};

/* Object ids: what is above is left to links of other kinds. */
#define OBJECT_ID_MAX 0x7fff

int object__compare(const void *a, const void *b);
void object__free(void *object);
/* Probes an opened object as was found in its file, and writes its records; false: it is no family's runtime. */
bool object__attach(struct session *s, struct object *o, const struct examination *x);
/* file_facts.c: closes its file, of which nothing is known then. */
void object__forget_file(struct object *o);
/* Keeps what an examination found, beside what other families have learned before, and calls the `found` of each. */
void object__keep_facts(struct session *s, struct object *o, const struct examination *x);
/* objects.c: NULL: it is not known. */
struct object *objects__find(struct session *s, const struct mapping *m);
/* The iterator over all mappings of code. */
const struct program *objects__vma_program(struct session *s);
/* evict.c: how many are kept */
void objects__bound(struct objects *o);
/* changed.c: follows writes to the object's file. */
void object__watch(struct session *s, struct object *o);
void object__unwatch(struct session *s, struct object *o);
/* One that was overwritten again and again may be probed again once it has been quiet. */
void object__end_rest(struct object *o);
/*
 * A debug file of the object: from a server by its build id, or at an absolute path in the root of its process or of
 * this one. A descriptor or negative errno.
 */
int object__open_debug(struct session *s, const struct object *o, bool server, bool own_root, const char *text);
/* recognize.c: reports that the object goes by the name of the program's library, but is another one. */
void object__note_unlike(struct session *s, const struct object *o, const struct program *p, bool other_soname);
/* Warns if the object has the name of a library that a family probes, but can't be examined. */
void object__refuse(struct session *s, const struct object *o, const char *why);
/* Has it the name of a library that a family probes? */
bool object__is_probed_library(struct session *s, const struct object *o);
/* remote.c: it lies on a file system that is served remotely (magic 0: on one that is not known); a process maps such a file. */
void remote__refuse(struct session *s, struct object *o, u32 magic);
void remote__note_process(struct session *s, const struct mapping *m);
/* hung.c: its file system does not answer. */
void object__refuse_hung(struct session *s, const struct object *o);

#endif
