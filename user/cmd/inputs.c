// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Opens and reads the traces of a command line. Several are merged into an unnamed file, which is then read instead.
 * Files are opened as the user who runs sonde, and read without privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/rule_files.h"
#include "model/merge.h"
#include "sandbox/memory_limit.h"
#include "sandbox/privileges.h"
#include "trace/reader.h"

/* Creates an unnamed file in TMPDIR or, if its file system has no O_TMPFILE, in /tmp. */
static int open_unnamed(void)
{
	const char *dir = secure_getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char name[] = "/tmp/sonde-XXXXXX";

	if (fd >= 0 || errno != EOPNOTSUPP)
		return fd;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static bool overlap(struct trace *const *traces, u32 n)
{
	for (u32 i = 1; i < n; i++)
		for (u32 j = 0; j < i; j++) {
			const struct trace_summary *a = trace__summary(traces[i]), *b = trace__summary(traces[j]);

			if (merge__host(traces, i) == merge__host(traces, j) && a->first < b->last &&
			    b->first < a->last)
				return true;
		}
	return false;
}

/* Describes how the merged trace numbers processes of other machines. */
static char *describe(struct trace *const *traces, u32 n)
{
	u32 seen = 0, host;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (u32 i = 1; i < n; i++) {
		host = merge__host(traces, i);
		if (host <= seen)
			continue;
		seen = host;
		fprintf(f, "%sPids and tids from %u on are those of %s, plus %u.", ftell(f) ? "\n" : "",
			host * MERGE_TASKS, trace__head(traces[i])->hostname ?: "another machine", host * MERGE_TASKS);
	}
	if (overlap(traces, n))
		fprintf(f, "%sTwo of the traces overlap in time on one machine: what both recorded is counted twice.",
			ftell(f) ? "\n" : "");
	fclose(f);
	return text;
}

static void print_failure(const char *path, int err, const char *why)
{
	switch (err) {
	case -ENOENT:
		cmd__error("%s: no such file", path);
		break;
	case -ENOMSG:
		cmd__error("%s: %s; `sonde record` writes one", path, *why ? why : "not a sonde trace");
		break;
	case -EPROTO:
		cmd__error("%s: written by a newer sonde than this one (%s)%s%s\nread it with that version", path,
			   SONDE_VERSION, *why ? ": " : "", why);
		break;
	case -EBADMSG:
		cmd__error(
			"%s: damaged: %s\n`sonde record` makes a new one; a copy made while it was written may be torn",
			path, *why ? why : "a checksum does not match");
		break;
	case -EACCES:
		cmd__error("%s: permission denied\nit belongs to another user: try with sudo", path);
		break;
	case -ENOMEM:
		cmd__error("%s: cannot read it: %s", path, cmd__reason(err));
		break;
	default:
		cmd__error("%s: %s", path, *why ? why : strerror(-err));
	}
}

static struct trace *merge(struct trace *const *traces, const struct inputs *in)
{
	struct trace *merged = NULL;
	char why[1024];
	int fd = fcntl(in->merged, F_DUPFD_CLOEXEC, 3), err = fd < 0 ? -errno : 0;

	snprintf(why, sizeof(why), "%s", strerror(-err));
	if (!err)
		err = merge__traces(traces, (const char *const *)in->paths, in->n, in->merged, why, sizeof(why));
	if (!err)
		err = trace__open_fd(&merged, fd, why, sizeof(why));
	if (err == -ENOMEM)
		cmd__error("cannot merge the traces: %s", cmd__reason(err));
	else if (err)
		cmd__error("%s", why);
	return merged;
}

static struct {
	const char *path;
	int fd;
} written = { .fd = -1 };

void inputs__use_file(const char *path, int fd)
{
	written.path = path;
	written.fd = fd;
}

/* Opens the file for reading. The process that reads traces gets no descriptor with which it could write one. */
static int open_input(const char *path, char *why, size_t len)
{
	char link[32];
	int fd;

	if (written.fd < 0 || strcmp(written.path, path))
		return trace__open_file(path, why, len);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", written.fd);
	fd = trace__open_file(link, why, len);
	close(written.fd);
	written.fd = -1;
	return fd;
}

/* false: said why not; close in any case. */
static bool open_all(struct inputs *in, char *const *paths, u32 n)
{
	char why[512];

	rule_files__add_folder();
	*in = (struct inputs){ .paths = paths, .n = n, .fds = malloc(n * sizeof(int)), .merged = -1 };
	for (u32 i = 0; in->fds && i < n; i++)
		in->fds[i] = -1;
	for (u32 i = 0; in->fds && i < n; i++) {
		in->fds[i] = open_input(paths[i], why, sizeof(why));
		if (in->fds[i] < 0) {
			print_failure(paths[i], in->fds[i], why);
			return false;
		}
	}
	return in->fds;
}

bool inputs__open(struct inputs *in, char *const *paths, u32 n)
{
	bool done = open_all(in, paths, n);

	if (done && n > 1) {
		in->merged = open_unnamed();
		if (in->merged < 0)
			cmd__error("no file to merge the traces in: %s\nset TMPDIR to a directory with room",
				   strerror(errno));
		done = in->merged >= 0;
	}
	if (!done)
		inputs__close(in);
	return done;
}

bool inputs__open_each(struct inputs *in, char *const *paths, u32 n)
{
	bool done = open_all(in, paths, n);

	if (!done)
		inputs__close(in);
	return done;
}

void inputs__close(struct inputs *in)
{
	for (u32 i = 0; in->fds && i < in->n; i++)
		if (in->fds[i] >= 0)
			close(in->fds[i]);
	if (in->merged >= 0)
		close(in->merged);
	free(in->fds);
	*in = (struct inputs){ .merged = -1 };
}

static struct trace *read_one(struct inputs *in, u32 i)
{
	char why[512] = "";
	struct trace *t;
	int err = trace__open_fd(&t, in->fds[i], why, sizeof(why));

	in->fds[i] = -1;
	if (err)
		print_failure(in->paths[i], err, why);
	return t;
}

static struct trace *read_all(struct inputs *in, char **notes)
{
	struct trace **traces = calloc(in->n, sizeof(*traces)), *merged = NULL;
	u32 opened = 0;

	while (traces && opened < in->n && (traces[opened] = read_one(in, opened)))
		opened++;
	if (opened == in->n)
		merged = merge(traces, in);
	if (merged && notes)
		*notes = describe(traces, in->n);
	while (opened)
		trace__close(traces[--opened]);
	free(traces);
	return merged;
}

static u64 file_bytes(const struct inputs *in)
{
	struct stat st;
	u64 sum = 0;

	for (u32 i = 0; i < in->n; i++)
		sum += fstat(in->fds[i], &st) ? 0 : (u64)st.st_size;
	return sum;
}

/* false: said why not. */
static bool give_up_rights(const struct inputs *in)
{
	int err;

	memory_limit__set(file_bytes(in));
	err = privileges__reader(in->sources);
	if (err)
		cmd__error("cannot drop privileges: %s", cmd__reason(err));
	return !err;
}

struct trace *inputs__read(struct inputs *in, char **notes)
{
	struct trace *t = NULL;

	if (notes)
		*notes = NULL;
	if (give_up_rights(in))
		t = in->n == 1 ? read_one(in, 0) : read_all(in, notes);
	inputs__close(in);
	return t;
}

bool inputs__read_each(struct inputs *in, struct trace **traces)
{
	bool done = give_up_rights(in);

	for (u32 i = 0; i < in->n; i++) {
		traces[i] = done ? read_one(in, i) : NULL;
		done = traces[i];
	}
	inputs__close(in);
	return done;
}
