/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a trace that a command line selects, with the facts and names that reports need. */
#pragma once

#include "cmd/pids.h"
#include "model/query.h"

struct selection_request {
	const char *command; /* for messages */
	const char *label; /* the trace's name in messages */
	const char *path; /* NULL: several were merged */
	const char *time; /* NULL: all of it */
	const struct pid_list *pids;
	u32 tid; /* 0: all */
	bool only_traced; /* time before all was attached, or after detaching began, is never selected */
	bool may_lack; /* some of the processes of -p may be in another trace only */
};

struct selection {
	struct trace_facts facts;
	struct query query;
	u32 *pids, *tids; /* memory of the query's lists */
};

/*
 * request and t must outlive it; it must not be moved. EXIT_DONE, or another exit status: it has printed what is wrong.
 * selection__free in any case.
 */
int selection__load(struct selection *s, struct trace *t, const struct selection_request *request);
void selection__free(struct selection *s);
