/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that are left out because they are on remote file systems. */
#pragma once

#include "process/process.h"

struct session;
struct object;

/*
 * Notes that the object is on a remote file system (magic 0: an unknown one), and that a process maps such a file.
 */
void remote__refuse(struct session *s, struct object *o, u32 magic);
void remote__note_process(struct session *s, const struct object *o, const struct mapping *m);
/* Prints a line about the files that were left out since the last line, if there are any. */
void remote__report(struct session *s);
void remote__free(struct session *s);
