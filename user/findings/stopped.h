/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that were stopped by a signal or a tracer, or frozen with their cgroup: what did it, and what ends it. */
#pragma once

#include "findings/finding.h"

bool stopped__is_kind(enum finding_kind kind);
/*
 * Writes what stopped a thread of process pid: "SIGSTOP", "gdb 4711", "/batch"; "": not known. object: of its interval.
 * by: the process that caused it. Returns buf.
 */
char *stopped__by(const struct names *names, u32 pid, enum finding_kind kind, u64 object, u32 by, char *buf,
		  size_t size);
/* Writes what lets the process go on: "`kill -CONT 4711` lets it go on."; "": the tracer does. Returns buf. */
char *stopped__remedy(enum finding_kind kind, u32 pid, char *buf, size_t size);
