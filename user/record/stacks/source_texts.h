/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the text of the lines of the user's code that frames are in, as meta_source. The files are read while
 * the recording runs, because they may have changed, or be on another machine, when the trace is read.
 *
 * Each process is asked for each of its files (attach/source_file.h), at the tick after its first frame there. If
 * processes have different texts under one path, no line of that path is valid: frames name only the path.
 */
#pragma once

#include "record/tables.h"
#include "util/map.h"

struct session;
struct source_line;
struct source_question;

struct source_texts {
	struct map paths; /* hash: number of the file */
	struct source_file *files; /* by number, from 1 on */
	u32 n_files;
	struct map asked; /* struct source_user: nothing */
	struct source_question *questions; /* to be asked, from `asks` on */
	u32 n_questions, asks;
	struct map lines; /* struct source_line: nothing */
	struct source_line *waiting; /* lines whose text is still to be written */
	u32 n_waiting;
	u64 bytes; /* of the files' texts */
	u64 written; /* bytes of lines */
};

void source_texts__init(struct source_texts *t);
void source_texts__free(struct source_texts *t);
/*
 * Returns the number of the user's source file that a process runs; 0: its text is not written. built: see
 * source_file__check().
 */
u32 source_texts__file(struct session *s, struct source_texts *t, u32 pid, const char *path, u64 built);
/* A frame is in this line of the file. file, line 0: harmless */
void source_texts__line(struct source_texts *t, u32 file, u32 line);
/* Called at each tick: reads files and writes lines. */
void source_texts__tick(struct session *s, struct source_texts *t);
/* The same for all that is left. */
void source_texts__finish(struct session *s, struct source_texts *t);
void source_texts__sizes(const struct source_texts *t, table_size_fn *fn, void *arg);
