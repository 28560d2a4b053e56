// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the processes of a recording would lack here of their confinement: children of doctor give their rights up as they do. */
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

/* What it lacks as text, "": nothing; negative errno: it could not be tried. */
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
			snprintf(lacks, len, "it can't give up its rights, and nothing is recorded (%s)",
				 strerror(-err));
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
		doctor__missing(d, name, lacks,
				"docs/security.md says what it protects; a container needs --privileged --pid=host");
}

void doctor__confinement(struct doctor *d)
{
	/* what can't be given up by who has no rights says nothing of the machine */
	if (!d->root)
		return;
	check(d, "confinement of sonde", "what reads targets' data is left with no rights, files or network",
	      as_worker);
	check(d, "confinement of sonde-attacher",
	      "what attaches is left with the capabilities and system calls for that", as_attacher);
}
