// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which processes run what the families trace, where, and how it can be traced. */
#include "cmd/doctor.h"

#include "attach/library.h"
#include "process/container.h"
#include "process/mapped.h"
#include "process/procs.h"
#include "record/family.h"
#include "util/array.h"

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

/* What one family has to say of one object. */
struct note {
	u16 family;
	char runtime[80], how[160];
};

/* An object is examined once. */
struct seen {
	u64 dev, ino;
	struct note *notes;
	u32 n;
	const char *remote; /* the file system for which it was not opened, NULL: it was */
	uid_t owner; /* of the file; 0: root, or it was not opened */
};

struct search {
	struct doctor *d;
	struct table *table;
	struct seen *seen;
	u32 n_seen;
	const char *remote; /* of the first file that was not opened for that */
	u32 n_remote, n_foreign; /* such files; processes that are not in the scope */
	u32 asked; /* process of which it is known whether it is in the scope */
	bool allowed;
	uid_t user; /* of that process */
	u32 noted; /* process whose container is known */
	char container[80], comm[64];
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* How the family comes to trace a library of its in this object; false: there is none. */
static bool find_library(const struct doctor *d, const struct schema_family *f, struct elf *elf, const char *path,
			 struct note *n)
{
	const struct family_host *h = family_host__find(f->name);
	char text[80];

	for (u32 i = 0; i < d->embedded.probes.n_programs; i++) {
		const struct program *p = &d->embedded.probes.programs[i];

		if (p->family != f || !*p->section.library)
			continue;
		if (elf ? library__match(elf, &d->embedded.probes, p->section.library) == LIBRARY_YES :
			  section__matches_library(&p->section, path)) {
			snprintf(n->runtime, sizeof(n->runtime), "%s", file_name(path));
			snprintf(n->how, sizeof(n->how), "its functions, by name");
			return true;
		}
		/* as record/attach.c knows NVIDIA's static libraries */
		snprintf(text, sizeof(text), "%.*s_static_", (int)strcspn(p->section.library, "."), p->section.library);
		if (elf && elf__names_hold(elf, text)) {
			snprintf(n->runtime, sizeof(n->runtime), "%s, linked in", p->section.library);
			snprintf(n->how, sizeof(n->how), "its functions, by the names inside");
			return true;
		}
	}
	if (!elf || !h || !h->hides_library || !elf__stripped(elf) || !h->hides_library(elf, text, sizeof(text)))
		return false;
	snprintf(n->runtime, sizeof(n->runtime), "a stripped copy, linked in");
	snprintf(n->how, sizeof(n->how), "not recorded without its debug file");
	return true;
}

/* A runtime that host code knows, or a library by its name. */
static bool examine_family(const struct doctor *d, const struct schema_family *f, struct elf *elf, const char *path,
			   struct note *n)
{
	const struct family_host *h = family_host__find(f->name);

	*n = (struct note){ .family = f->id };
	if (find_library(d, f, elf, path, n))
		return true;
	/* families that only follow such processes have nothing in the object */
	if (!elf || !h || !h->is_runtime || h->is_runtime == runtime__is_one || !h->is_runtime(elf, path))
		return false;
	snprintf(n->runtime, sizeof(n->runtime), "%s", file_name(path));
	if (h->describe)
		return h->describe(elf, path, n->runtime, sizeof(n->runtime), n->how, sizeof(n->how));
	snprintf(n->how, sizeof(n->how), "places in its code");
	return true;
}

static void examine(struct search *s, const struct mapping *m, struct seen *seen)
{
	const struct schema *schema = s->d->embedded.schema;
	struct elf *elf = NULL;
	int fd = mapped__open(m, MAPPED_ANY, s->d->scope.remote_files == ANSWER_YES, &seen->remote);
	struct stat st;

	if (seen->remote)
		s->n_remote++;
	if (seen->remote && !s->remote)
		s->remote = seen->remote;
	seen->owner = fd >= 0 && !fstat(fd, &st) ? st.st_uid : 0;
	if (fd >= 0 && elf__open(&elf, fd))
		elf = NULL;
	for (u32 i = 0; i < schema->n_families; i++) {
		struct note note;

		if (!schema->families[i].id || !examine_family(s->d, &schema->families[i], elf, m->path, &note))
			continue;
		if (!array__push(seen->notes, seen->n, note))
			break;
	}
	elf__close(elf);
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

/* The process's name and container, read once. */
static void note_process(struct search *s, u32 pid)
{
	static char text[8192], cgroup[4096];
	struct container c;
	char path[64];
	size_t n;
	FILE *f;

	if (s->noted == pid)
		return;
	s->noted = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	doctor__read_line(path, s->comm, sizeof(s->comm));
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	container__read(&c, text, cgroup, sizeof(cgroup));
	snprintf(s->container, sizeof(s->container), "%s", c.name);
}

/* Is the process in the scope? Mappings come process by process. */
static bool is_allowed(struct search *s, u32 pid)
{
	struct stat st;
	char path[32];

	if (s->asked == pid)
		return s->allowed;
	s->asked = pid;
	s->allowed = scope__allows(&s->d->scope, pid, NULL, 0);
	s->n_foreign += !s->allowed;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	s->user = stat(path, &st) ? 0 : st.st_uid;
	return s->allowed;
}

/* How it is traced, or which part of the policy is against it. */
static const char *how(const struct search *s, const struct seen *seen, const struct note *n, char *text, size_t len)
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
			   V_TEXT(f->name), V_TEXT(n->runtime), V_TEXT(how(s, seen, n, text, sizeof(text))),
			   V_TEXT(m->path));
	}
}

void doctor__runtimes(struct doctor *d)
{
	struct search s = { .d = d };
	int unread;

	s.table = REPORT_TABLE(&d->out, "runtimes", "Runtimes that are mapped now", runtime_columns);
	unread = procs__each_mapping(on_mapping, &s);
	if (unread > 0 && !d->root)
		report_output__note(&d->out, "%d processes could not be examined: not allowed; run it as root.",
				    unread);
	if (s.n_foreign)
		report_output__note(
			&d->out, "%u process%s of other users %s left out (--scope user, %s); %s.", s.n_foreign,
			s.n_foreign == 1 ? "" : "es", s.n_foreign == 1 ? "is" : "are", d->scope.whose_from,
			d->root ? "--scope all examines them, too" : "`sudo sonde doctor` examines them, too");
	if (s.n_remote)
		report_output__note(
			&d->out,
			"Mapped files on %s or the like, whose server may never answer, were not opened (%u); "
			"--remote-files opens them.",
			s.remote, s.n_remote);
	if (!s.table->n_rows)
		report_output__note(
			&d->out,
			"No process maps CPython or a CUDA library now; `sonde record` finds them when they start.");
	s.table->machine_only = !s.table->n_rows;
	for (u32 i = 0; i < s.n_seen; i++)
		free(s.seen[i].notes);
	free(s.seen);
}
