/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A format to which traces are converted is one file here, which fills a struct exporter and registers it. */
#pragma once

#include <stdio.h>

#include "model/facts.h"
#include "model/names.h"
#include "model/stacks.h"
#include "util/registry.h"

struct export
{
	struct trace *trace;
	const struct trace_facts *facts;
	struct names *names; /* loaded */
	const struct stacks *stacks; /* loaded */
	FILE *out;
	const char *path; /* path of the output; NULL: standard output */
	int fd; /* descriptor of out, for a format that writes to it itself (needs_file) */
	const struct schema_event *event; /* the kind to export, for a format with one_kind */
	const char *choice; /* value of --event, for a format with check; NULL: none */
	struct trace_window part; /* the time to export, for a format whose check sets it */
	struct trace_ids pids; /* the processes to export, for a format whose check sets them; n 0: all */
	u32 pid; /* of a format of one_process: the one that -p or --rank names, 0: neither does; and for pids.list */
	char note[256]; /* a note for the user about what was written */
	char why[512]; /* reason for a failure, if the format knows more than errno */
	void *data; /* private data of the exporter */
};

struct exporter {
	const char *name; /* "text" */
	const char *doc; /* one line for `sonde list formats` */
	bool binary; /* refused on a terminal */
	bool one_kind; /* writes the single kind of event that --event names */
	bool needs_file; /* can't be written to a pipe */
	bool one_process; /* -p and --rank name the process that it writes */
	bool reads_sources; /* opens files that the trace names, as some reports do */
	/* Checks a format's own values of --event: 0, or -EINVAL and why. NULL: only one_kind takes --event */
	int (*check)(struct export *e);
	/* These return 0 or negative errno, which ends the export. */
	int (*begin)(struct export *e); /* once, before all rows; may set data. NULL: nothing to do */
	int (*rows)(struct export *e,
		    const struct rows *rows); /* in file order: one kind of one chunk. NULL: begin does all */
	/* once, after begin, also when something failed: frees data. NULL: nothing to do */
	int (*end)(struct export *e);
};

#define EXPORTER(ident) REGISTER(exporter, sonde_exporters, ident)

const struct exporter *exporter__find(const char *name);
/* Calls fn for each exporter, sorted by name. */
void exporter__each(void (*fn)(const struct exporter *x, void *arg), void *arg);
/* Calls begin, rows for all rows (filter NULL: everything), and end. Returns 0 or negative errno. */
int export__run(struct export *e, const struct exporter *x, const struct trace_filter *filter);
