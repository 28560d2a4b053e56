// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Several traces on a command line: merged into a file without a name, which is then the one that is read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "model/merge.h"

/* In TMPDIR, or where it takes no such files in memory. */
static int open_unnamed(void)
{
	const char *dir = getenv("TMPDIR");
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

/* What the merged trace's pids of other machines mean. */
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
		fprintf(f, "%sTwo of the traces are of one machine and of one time: what both recorded is there twice.",
			ftell(f) ? "\n" : "");
	fclose(f);
	return text;
}

static struct trace *open_merged(struct trace *const *traces, char *const *paths, u32 n)
{
	struct trace *merged = NULL;
	char why[1024], path[64];
	int fd = open_unnamed();

	if (fd < 0) {
		cmd__error("no file to merge the traces in: %s\nset TMPDIR to a directory with room", strerror(errno));
		return NULL;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (merge__traces(traces, (const char *const *)paths, n, fd, why, sizeof(why)) ||
	    trace__open(&merged, path, why, sizeof(why)))
		cmd__error("%s", why);
	close(fd);
	return merged;
}

struct trace *cmd__open_traces(char *const *paths, u32 n, char **notes)
{
	struct trace **traces = calloc(n, sizeof(*traces)), *merged = NULL;
	u32 opened = 0;

	if (notes)
		*notes = NULL;
	if (n == 1) {
		free(traces);
		return cmd__open_trace(paths[0]);
	}
	while (traces && opened < n && (traces[opened] = cmd__open_trace(paths[opened])))
		opened++;
	if (opened == n)
		merged = open_merged(traces, paths, n);
	if (merged && notes)
		*notes = describe(traces, n);
	while (opened)
		trace__close(traces[--opened]);
	free(traces);
	return merged;
}
