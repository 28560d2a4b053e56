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
	bool examined;
	u32 families; /* bit by family id: those for which it is a runtime */
	int fd; /* kept for runtimes, else -1 */
	struct elf *elf; /* likewise */
};

/* Probes an opened object for every family that wants it and writes its records; false: none does. */
bool object__attach(struct session *s, struct object *o);
/* Says so if the object has the name of a library that a family probes, but can't be looked into. */
void object__refuse(struct session *s, const struct object *o, const char *why);

#endif
