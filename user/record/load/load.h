/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses families and their programs, adapts to the kernel's features, and loads the BPF object. */
#pragma once

#include "core/maps.h"
#include "core/meta.h"
#include "kernel/probes.h"

struct session;

/* What is recorded, and how. Chosen before the recording starts; only a refused program turns a family off later. */
struct load {
	struct {
		enum span_mode spans;
		enum attach_method span, entry;
	} method; /* how calls and entries are probed */
	bool family_on[FAMILY_MAX]; /* by family id */
	bool tracepoints_alone[FAMILY_MAX]; /* by family id: it only uses tracepoints */
	bool walks_python; /* a family that is on walks Python stacks */
	bool walks_at_calls; /* such a family does so at the start of its calls, because of an option */
	bool names_files; /* a family that is on writes syscall_file events */
	bool everything; /* all families, and all their programs regardless of the options: for try_families.h */
};

/* Opens the object, and applies the options. Returns 0 or negative errno with a message; -EINVAL: wrong usage. */
int load__open(struct session *s, char *err, size_t len);
/* Configures the object and loads it. Returns 0 or negative errno with a message. */
int load__load(struct session *s, char *err, size_t len);
/* Is the family on in this recording? */
bool load__has_family(const struct session *s, u8 family);
/* Are entries and returns of calls probed by different links? */
bool load__has_separate_returns(const struct session *s);
/* Returns whether this recording needs the program. */
bool load__is_needed(struct session *s, const struct program *p);

/* In options.c: the families and options of the command line. -EINVAL, with a message: wrong usage */
int options__apply(struct session *s, char *err, size_t len);
/* In maps.c: closes all maps except those that are needed, which become read-only; failures are appended to lacks. */
void maps__restrict(struct session *s, char *lacks, size_t len);
