/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files behind the descriptors of system calls, by name. */
#pragma once

#include "model/query.h"
#include "probes/syscall/syscall.h"

#define OSRT_FILE_NAME 288 /* bytes of a name with its NUL */

struct osrt_file {
	u32 number; /* files of equal name have the same number */
	u32 kind;
	u32 peer; /* the process at the other end, or that holds the file's lock; 0: not known */
	u32 pid; /* the process that has the file; of several with one number, the one whose use was recorded */
};

struct osrt_files;

/* Reads the whole trace regardless of args, because a file is recorded once. 0 or negative errno; free in any case. */
int osrt_files__new(struct osrt_files **out, const struct query *args);
void osrt_files__free(struct osrt_files *f);
u32 osrt_files__count(const struct osrt_files *f);
/* i: from 0 to the count */
const struct osrt_file *osrt_files__at(const struct osrt_files *f, u32 i);
/* file: the value of field `file` in a call of this process. NULL: not recorded. */
const struct osrt_file *osrt_files__find(const struct osrt_files *f, u32 pid, u32 file);
/*
 * "/etc/hosts", "tcp 127.0.0.1:40000 to 127.0.0.1:5432 (postgres 812)", cut at 287 bytes. The process at the other end
 * is in parentheses, if the recording found it.
 */
const char *osrt_files__name(const struct osrt_files *f, u32 number);

/* Writes "tcp B to A" of "tcp A to B (postgres 812)", without the process in parentheses; "" for another name. */
void osrt_file__write_other_end(const char *name, char *buf, size_t size);
/*
 * Returns the process at the other end of the file, or that holds its lock, which the process has: as it was found
 * while recording, else one with a connection between the same addresses. 0: not known.
 */
u32 osrt_files__other_end(const struct osrt_files *f, u32 pid, const struct osrt_file *file);
