/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A mapped file with code. Shared by objects.c (which files there are) and attach.c (probes in one). */
#ifndef SONDE_RECORD_OBJECTS_H
#define SONDE_RECORD_OBJECTS_H

#include "record/internal.h"

struct object {
	u64 dev, ino; /* backing inode */
	u32 generation; /* of that inode number: file systems reuse them */
	char *path; /* as the first process that mapped it sees it */
	u64 first, live; /* CLOCK_MONOTONIC ns; live 0: nothing attached */
	u16 id; /* in the trace, 0: not probed */
	int watch; /* by which a write to the file is told; 0: none */
	u32 pid; /* the process in whose root path is, 0: this one's */
	bool examined;
	bool debug_sought;
	bool ahead; /* probed before any process mapped it */
	bool mapped; /* by a process, since it is live */
	u32 families; /* bit by family id: those for which it is a runtime */
	int fd; /* kept for runtimes, else -1 */
	struct elf *elf; /* likewise */
};

/* Probes an opened object for every family that wants it and writes its records; false: none does. */
bool object__attach(struct session *s, struct object *o);
/* changed.c: follows writes to the object's file. */
void object__watch(struct session *s, struct object *o);
/* objects.c: the object with this watch, or NULL. */
struct object *objects__watched(struct session *s, int watch);
/* Looks for symbols that the object was stripped of, once. true: there are more now. */
bool object__add_debug(struct session *s, struct object *o);
/* Says so if the object has the name of a library that a family probes, but can't be looked into. */
void object__refuse(struct session *s, const struct object *o, const char *why);

#endif
