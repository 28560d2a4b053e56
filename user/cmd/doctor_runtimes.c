// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lists the processes that map something the families trace, and how it can be traced. */
#include "cmd/doctor.h"

#include "cmd/doctor_examine.h"
#include "output/text.h"
#include "process/container.h"
#include "process/mapped.h"
#include "process/procs.h"
#include "sandbox/bounded.h"
#include "util/array.h"
#include "util/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct column runtime_columns[] = {
	{ "pid", "Pid", VALUE_U64, SHOW_PLAIN },
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "container", "Container", VALUE_TEXT, SHOW_PLAIN },
	{ "family", "Family", VALUE_TEXT, SHOW_PLAIN },
	{ "runtime", "Runtime", VALUE_TEXT, SHOW_PLAIN },
	{ "how", "How it is traced", VALUE_TEXT, SHOW_PLAIN },
	{ "object", "Library or program", VALUE_TEXT, SHOW_PLAIN },
};

/* A mapped file, which is examined once. */
struct seen {
	u64 dev, ino;
	struct note *notes;
	u32 n;
	const char *remote; /* its remote file system, because of which it was not opened; or NULL */
	uid_t owner; /* of the file; 0: root, or the file was not opened */
};

struct search {
	struct doctor *d;
	struct table *table;
	struct seen *seen;
	u32 n_seen;
	const char *remote; /* file system of the first file that was not opened because its file system is remote */
	u32 n_remote, n_foreign; /* number of such files; number of processes outside the scope */
	struct note_taker *taker;
	char failed[256]; /* the first file that could not be examined */
	u32 n_failed;
	u32 checked_pid; /* last process whose scope was checked, with the result */
	bool is_in_scope;
	uid_t user; /* of that process */
	u32 described_pid; /* process to which container and comm belong */
	char container[80], comm[64];
};

static void examine(struct search *s, const struct mapping *m, struct seen *seen)
{
	int fd = mapped__open(m, MAPPED_ANY, s->d->scope.remote_files == ANSWER_YES, &seen->remote), n;
	struct note notes[NOTES_MAX];
	struct stat st;

	if (seen->remote)
		s->n_remote++;
	if (seen->remote && !s->remote)
		s->remote = seen->remote;
	seen->owner = fd >= 0 && !fstat(fd, &st) ? st.st_uid : 0;
	n = note_taker__ask(s->taker, fd, m->path, notes);
	if (n < 0 && !s->n_failed++)
		snprintf(s->failed, sizeof(s->failed), "%s", m->path);
	for (int i = 0; i < n; i++)
		if (!array__push(seen->notes, seen->n, notes[i]))
			break;
	if (fd >= 0)
		close(fd);
}

static struct seen *look_up(struct search *s, const struct mapping *m)
{
	struct seen *seen;

	for (u32 i = 0; i < s->n_seen; i++)
		if (s->seen[i].ino == m->ino && s->seen[i].dev == m->dev)
			return &s->seen[i];
	if (!array__room(s->seen, s->n_seen))
		return NULL;
	seen = &s->seen[s->n_seen++];
	*seen = (struct seen){ .dev = m->dev, .ino = m->ino };
	examine(s, m, seen);
	return seen;
}

/* Reads the process's name and container, once per process. */
static void note_process(struct search *s, u32 pid)
{
	static char text[8192], cgroup[4096];
	struct container c;
	char path[64];
	size_t n;
	FILE *f;

	if (s->described_pid == pid)
		return;
	s->described_pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file__first_line(path, s->comm, sizeof(s->comm));
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	container__read(&c, text, cgroup, sizeof(cgroup));
	snprintf(s->container, sizeof(s->container), "%s", c.name);
}

/* Is the process in the scope? Mappings come process by process, so the last result is stored. */
static bool is_allowed(struct search *s, u32 pid)
{
	struct stat st;
	char path[32];

	if (s->checked_pid == pid)
		return s->is_in_scope;
	s->checked_pid = pid;
	s->is_in_scope = scope__allows(&s->d->scope, pid, NULL, 0);
	s->n_foreign += !s->is_in_scope;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	s->user = stat(path, &st) ? 0 : st.st_uid;
	return s->is_in_scope;
}

/* Returns how the object is traced, or which part of the policy forbids that. */
static const char *describe_state(const struct search *s, const struct seen *seen, const struct note *n, char *text,
				  size_t len)
{
	if (seen->remote)
		snprintf(text, len, "not: it lies on %s, whose server may never answer; --remote-files allows it",
			 seen->remote);
	else if (s->d->scope.trusted_files == ANSWER_YES && seen->owner && seen->owner != s->user)
		snprintf(text, len,
			 "only if a process of its owner maps it, too (--trusted-files): it belongs to user %u",
			 seen->owner);
	else
		return n->how;
	return text;
}

static void on_mapping(const struct mapping *m, void *arg)
{
	struct search *s = arg;
	struct seen *seen = is_allowed(s, m->pid) ? look_up(s, m) : NULL;
	char text[200];

	for (u32 i = 0; seen && i < seen->n; i++) {
		const struct note *n = &seen->notes[i];
		const struct schema_family *f = schema__family_by_id(s->d->embedded.schema, n->family);

		note_process(s, m->pid);
		table__add(s->table, V_U64(m->pid), V_TEXT(s->comm), *s->container ? V_TEXT(s->container) : V_NONE,
			   V_TEXT(f->name), V_TEXT(n->runtime), V_TEXT(describe_state(s, seen, n, text, sizeof(text))),
			   V_TEXT(m->path));
	}
}

void doctor__runtimes(struct doctor *d)
{
	struct search s = { .d = d, .taker = note_taker__new(&d->embedded) };
	struct procs_unread unread = {};

	s.table = REPORT_TABLE(&d->out, "runtimes", "Runtimes that are mapped now", runtime_columns);
	if (s.taker)
		procs__each_mapping(on_mapping, &s, &unread);
	note_taker__free(s.taker);
	if (!s.taker)
		report_output__note(&d->out, "No process could be examined: no memory.");
	if (s.n_failed)
		report_output__note(
			&d->out,
			"%u mapped file%s could not be examined: what parses it crashed or took too long. The first: %s",
			s.n_failed, s.n_failed == 1 ? "" : "s", s.failed);
	if (unread.refused && !d->root)
		report_output__note(&d->out, "%u processes could not be examined: not allowed; run it as root.",
				    unread.refused);
	if (unread.late)
		report_output__note(&d->out,
				    "%u process%s could not be examined. The first is process %u: " BOUNDED_LATE ".",
				    unread.late, text__es(unread.late), unread.first_late);
	if (s.n_foreign)
		report_output__note(
			&d->out, "%u process%s of other users %s left out (--scope user, %s); %s.", s.n_foreign,
			text__es(s.n_foreign), s.n_foreign == 1 ? "is" : "are", d->scope.kind_from,
			d->root ? "--scope all examines them, too" : "`sudo sonde doctor` examines them, too");
	if (s.n_remote)
		report_output__note(
			&d->out,
			"Mapped files on %s or the like, whose server may never answer, were not opened (%u); "
			"--remote-files opens them.",
			s.remote, s.n_remote);
	if (!s.table->n_rows && !s.n_failed)
		report_output__note(
			&d->out,
			"No process maps CPython or a CUDA library now; `sonde record` finds them when they start.");
	s.table->machine_only = !s.table->n_rows;
	for (u32 i = 0; i < s.n_seen; i++)
		free(s.seen[i].notes);
	free(s.seen);
}
