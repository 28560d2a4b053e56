// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks how far a recording's processes can be confined here, by children of doctor that give up the same rights. */
#include "cmd/doctor.h"

#include "sandbox/privileges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LACKS_MAX 512

typedef int (*give_up_fn)(const struct doctor *d, char *lacks, size_t len);

static int as_worker(const struct doctor *d, char *lacks, size_t len)
{
	return privileges__worker(lacks, len);
}

static int as_attacher(const struct doctor *d, char *lacks, size_t len)
{
	return privileges__attacher(false, !d->features.multi, lacks, len);
}

/* What a child of doctor reports in memory that both share. */
struct trial {
	bool is_done;
	char lacks[LACKS_MAX]; /* the confinement that it lacks; "": none */
};

static void try(const struct doctor *d, give_up_fn give_up, struct trial *t)
{
	pid_t child = fork();
	int err;

	if (!child) {
		err = give_up(d, t->lacks, sizeof(t->lacks));
		if (err)
			snprintf(t->lacks, sizeof(t->lacks), "it can't drop its rights, and nothing is recorded (%s)",
				 strerror(-err));
		t->is_done = true;
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void check(struct doctor *d, const char *name, const char *whole, give_up_fn give_up)
{
	struct trial *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED) {
		d->out.failed = true;
		return;
	}
	try(d, give_up, t);
	doctor__check(d, "privileges", name,
		      !t->is_done ? "unknown" :
		      *t->lacks	  ? "partly" :
				    "works",
		      !t->is_done ? "the child that tried it ended early" :
		      *t->lacks	  ? t->lacks :
				    whole);
	if (t->is_done && *t->lacks)
		doctor__missing(
			d, name, t->lacks,
			"docs/security.md explains what it protects; a container needs --privileged --pid=host");
	munmap(t, sizeof(*t));
}

void doctor__confinement(struct doctor *d)
{
	/* Without root there are few rights to give up, so the result would not describe this machine. */
	if (!d->root)
		return;
	check(d, "confinement of sonde", "the process that reads targets' data keeps no rights, files or network",
	      as_worker);
	check(d, "confinement of sonde-attacher",
	      "the process that attaches keeps only the capabilities and system calls for that", as_attacher);
}
