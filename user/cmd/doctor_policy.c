// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports the policy in force: which users' processes and files a recording may trace, and where that is configured. */
#include "cmd/doctor.h"

#include <stdio.h>

static void add(struct doctor *d, const char *name, const char *state, const char *what, const char *from)
{
	char text[300];

	snprintf(text, sizeof(text), "%s (%s)", what, from);
	doctor__check(d, "policy", name, state, text);
}

void doctor__policy(struct doctor *d)
{
	const struct scope *s = &d->scope;
	char whose[200];

	snprintf(whose, sizeof(whose), "only processes of the user %s are examined and traced",
		 scope__user_name(s->user));
	add(d, "scope", s->kind == SCOPE_ALL ? "all" : "user",
	    s->kind == SCOPE_ALL ? "processes of all users are examined and traced" : whose, s->kind_from);
	add(d, "trusted-files", s->trusted_files == ANSWER_YES ? "yes" : "no",
	    s->trusted_files == ANSWER_YES ?
		    "probes go into files of root and of the user of a process that maps them" :
		    "probes go into files of any owner, but not of setuid programs",
	    s->trusted_from);
	add(d, "remote-files", s->remote_files == ANSWER_YES ? "yes" : "no",
	    s->remote_files == ANSWER_YES ?
		    "files on network and FUSE file systems are opened, too" :
		    "files on network and FUSE file systems, whose server may never answer, are left out",
	    s->remote_from);
}
