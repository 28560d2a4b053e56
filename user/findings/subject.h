/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the threads that the user means by a pid, a tid, the name of a process or thread, or a function. */
#pragma once

#include "findings/findings.h"

enum subject_kind {
	SUBJECT_NONE, /* nothing matches, or several candidates do */
	SUBJECT_THREAD,
	SUBJECT_PROCESS,
	SUBJECT_THREADS, /* those of one process with the same name */
	SUBJECT_FUNCTION,
};

struct subject_candidate {
	enum subject_kind kind;
	u32 pid, tid; /* tid 0: a process or a function */
	char name[256];
	u32 search; /* number of the stack that last added its time */
	u64 ns; /* time of its threads; of a function, the time that it ran and waited */
};

struct subject {
	enum subject_kind kind;
	struct thread_key *threads;
	u32 n;
	char name[256]; /* of the function, or the threads */
	struct map stacks; /* u32 stack -> u8: whether the function is on it, as far as this was asked */
	struct subject_candidate *candidates; /* by ns, the longest first */
	u32 n_candidates;
	bool is_cut; /* further names match */
	bool is_exact; /* the candidates have this name, false: their names only contain it */
};

/* text NULL: the thread of the first finding. 0 or -ENOMEM; call subject__free in either case. */
int subject__find(struct subject *s, const struct findings *f, const char *text);
void subject__free(struct subject *s);
/* Says whether the function s->name is on the stack. */
bool subject__has_function(struct subject *s, const struct stacks *stacks, u32 stack);
