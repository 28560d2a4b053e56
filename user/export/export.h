/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A format that traces are converted to: one file here that fills a struct
 * exporter and registers it.
 */
#ifndef SONDE_EXPORT_EXPORT_H
#define SONDE_EXPORT_EXPORT_H

#include <stdio.h>

#include "model/facts.h"
#include "model/names.h"
#include "model/stacks.h"

struct export
{
	struct trace *trace;
	const struct trace_facts *facts;
	const struct names *names; /* loaded */
	const struct stacks *stacks; /* loaded */
	FILE *out;
	const char *path; /* that out is to have; NULL: standard output */
	int fd; /* of out, for a format that writes by itself (needs_file) */
	const struct schema_event *event; /* of a format of one kind: which */
	const char *choice; /* of a format with a check: what --event says, NULL: nothing */
	char note[256]; /* a note for the user about what was written */
	char why[512]; /* set by a format that can say more of a failure than errno does */
	void *data; /* the exporter's own */
};

struct exporter {
	const char *name; /* "text" */
	const char *doc; /* one line for `sonde list formats` */
	bool binary; /* not for a terminal */
	bool one_kind; /* takes a single kind of event: --event */
	bool needs_file; /* can't be written to a pipe */
	/* A format that takes what it likes for --event: -EINVAL with a message. NULL: it takes none, unless one_kind */
	int (*check)(const struct trace *t, const char *option, char *why, size_t len);
	/* All return 0 or negative errno, which ends the export. */
	int (*begin)(struct export *e); /* once, before all rows; may set data. NULL: nothing to do */
	int (*rows)(struct export *e, const struct rows *rows); /* in file order: one kind of one chunk */
	/* once, after begin, also when something failed: frees data. NULL: nothing to do */
	int (*end)(struct export *e);
};

#define EXPORTER(ident)                                                                                               \
	static const struct exporter ident;                                                                           \
	static const struct exporter *const ident##_entry __attribute__((used, section("sonde_exporters"))) = &ident; \
	static const struct exporter ident

const struct exporter *exporter__find(const char *name);
/* Calls fn for each, by name. */
void exporter__each(void (*fn)(const struct exporter *x, void *arg), void *arg);
/* begin, all rows (filter: NULL for everything), end. 0 or negative errno. */
int export__run(struct export *e, const struct exporter *x, const struct trace_filter *filter);

#endif
