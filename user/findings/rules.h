/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules on functions of libraries: what a wait in them is for, and whether they call the user's code. library.rules is
 * compiled in, others are added; docs/adding-a-rule.md describes the format.
 */
#pragma once

#include "findings/finding.h"

enum rule_role {
	RULE_CALLED, /* the user's code calls the function */
	RULE_POOL, /* so it does; the function returns an object of a pool, such as a connection */
	RULE_RUNS, /* the function calls the user's code for each task, */
	RULE_SERVES, /* for each request, */
	RULE_LOOPS, /* or for each callback of an event loop */
	RULE_TASK, /* a coroutine in which an asyncio task waits */
	RULE_SENDS, /* the same, but the task has data to send, so it is not idle however long the wait is */
	RULE_NATIVE, /* the code is not Python's; so is that of the following */
	RULE_NATIVE_RUNS, /* it runs in the threads of a pool, which its words name */
	RULE_NATIVE_LOOPS, /* an event loop, which calls the user's code without a Python function */
	RULE_GREENLETS, /* a library that does so on stacks of their own, where no function of it is seen */
	RULE_ROLES
};

#define RULE_WORDS_MAX 80u

struct rule {
	const char *file; /* the end of a path; a folder if it ends in '/'; a pattern if it has a '*' */
	char **functions;
	u32 n_functions; /* 0: all functions of the file */
	u32 next; /* number of the rule before it whose file begins with the same part, 0: none */
	u32 line;
	bool is_tested;
	const char *words; /* what the function does, or what a wait in it is for; NULL: none */
	enum finding_kind kind; /* FINDING_NONE: does not classify the wait */
	enum rule_role role;
};

/*
 * Adds the rules of a text, all or none of them. They take precedence over those compiled in, but not over those that
 * were added before. name must stay valid. Returns 0, -ENOMEM, or -EINVAL with "NAME:LINE: what is wrong" in err.
 */
int rules__add(const char *name, const char *text, char *err, size_t len);
/* Adds those compiled in, as the first call of rule__of() does. */
int rules__add_own(char *err, size_t len);
/* Returns the rule on waits of threads in this function, of Python or native; NULL: there is none. */
const struct rule *rule__of(const struct stack_frame *f);
/* Returns the rule on waits of asyncio tasks in this function. */
const struct rule *rule__of_task(const struct stack_frame *f);
