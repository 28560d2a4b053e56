// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks how far a recording's processes can be confined here, by children of doctor that give up the same rights. */
#include "cmd/doctor.h"

#include "sandbox/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* Writes which confinement a child lacks, "" if none. Returns 0, or negative errno if that could not be tried. */
static int try(const struct doctor *d, give_up_fn give_up, char *lacks, size_t len)
{
	int ends[2], err = 0, status;
	ssize_t n = -1;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child) {
		*lacks = '\0';
		err = give_up(d, lacks, len);
		if (err)
			snprintf(lacks, len, "it can't drop its rights, and nothing is recorded (%s)", strerror(-err));
		n = (ssize_t)strlen(lacks) + 1;
		_exit(write(ends[1], lacks, (size_t)n) == n ? 0 : 1);
	}
	close(ends[1]);
	if (child > 0) {
		n = read(ends[0], lacks, len - 1);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	if (n <= 0)
		return -EIO;
	lacks[n] = '\0';
	return 0;
}

static void check(struct doctor *d, const char *name, const char *whole, give_up_fn give_up)
{
	char lacks[LACKS_MAX];
	int err = try(d, give_up, lacks, sizeof(lacks));

	doctor__check(d, "privileges", name,
		      err    ? "unknown" :
		      *lacks ? "partly" :
			       "works",
		      err    ? strerror(-err) :
		      *lacks ? lacks :
			       whole);
	if (!err && *lacks)
		doctor__missing(
			d, name, lacks,
			"docs/security.md explains what it protects; a container needs --privileged --pid=host");
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
