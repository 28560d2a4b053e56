// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files that are left out because they are on remote file systems (--remote-files), or because these do not let sonde
 * read them. If programs are on NFS there are hundreds of them, so one line names the first that matters, how many
 * there are, which processes map them, and the command that examines them, for each account; later ones are reported
 * together once a second.
 */
#include "process/filesystem.h"
#include "record/discover/objects.h"
#include "record/parts.h"
#include "util/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 3 /* processes in a line */
#define KNOWN_MAX 4096 /* processes that are counted only once */

struct remote_files {
	struct remote_files *next;
	u32 account;
	u32 n_files;
	char path[PATH_MAX]; /* of the first one, or of the first that a family would probe */
	char fs[64];
	bool is_followed;
	bool is_denied; /* the server, or the kernel for it, refuses to let the first one be read */
	struct {
		u32 pid;
		char comm[16];
	} named[NAMED_MAX];
	u32 n_named;
	u32 n_processes;
	u32 known_pids[KNOWN_MAX]; /* their pids */
	u32 last; /* the pid noted last */
};

static struct remote_files *find_files(struct session *s, u32 account)
{
	struct remote_files *r = s->remote;

	while (r && r->account != account)
		r = r->next;
	return r;
}

static struct remote_files *get_files(struct session *s, u32 account)
{
	struct remote_files *r = find_files(s, account);

	if (r || !(r = calloc(1, sizeof(*r))))
		return r;
	r->account = account;
	r->next = s->remote;
	s->remote = r;
	return r;
}

static bool is_python(const char *path)
{
	const char *name = path__file_name(path);

	return !strncmp(name, "python3", 7) || !strncmp(name, "libpython3", 10);
}

void remote__refuse(struct session *s, struct object *o, u32 magic)
{
	const char *name = filesystem__remote(magic);
	struct remote_files *r = get_files(s, o->account);
	bool library = session__program_for(s, o->path), matters = library || is_python(o->path);

	o->remote = true;
	s->not_attached += library;
	if (!r)
		return;
	if (!r->n_files++ || (matters && !r->is_followed)) {
		snprintf(r->path, sizeof(r->path), "%s", o->path);
		r->is_denied = o->fd == -EACCES;
		snprintf(r->fs, sizeof(r->fs), "%s",
			 name		       ? name :
			 r->is_denied || magic ? "a mount that another user made" :
						 "a network or FUSE file system");
	}
	r->is_followed |= matters;
}

void remote__note_process(struct session *s, const struct object *o, const struct mapping *m)
{
	struct remote_files *r = find_files(s, o->account);
	u32 i;

	/* a file that was named already needs no line */
	if (!r || r->n_processes == KNOWN_MAX)
		return;
	/* the mappings of a process come in sequence */
	if (r->n_processes && r->last == m->pid)
		return;
	r->last = m->pid;
	for (i = 0; i < r->n_processes && r->known_pids[i] != m->pid; i++)
		;
	if (i < r->n_processes)
		return;
	r->known_pids[r->n_processes++] = m->pid;
	if (r->n_named == NAMED_MAX)
		return;
	r->named[r->n_named].pid = m->pid;
	memcpy(r->named[r->n_named].comm, m->comm, sizeof(m->comm) - 1);
	r->n_named++;
}

static void list_processes(const struct remote_files *r, char *text, size_t len)
{
	size_t used = 0;

	*text = '\0';
	for (u32 i = 0; i < r->n_named && used < len; i++)
		used += snprintf(text + used, len - used, "%s%s %u", i ? ", " : "",
				 *r->named[i].comm ? r->named[i].comm : "process", r->named[i].pid);
	if (r->n_processes > r->n_named && used < len)
		snprintf(text + used, len - used, " and %u more", r->n_processes - r->n_named);
}

/* Writes the user's command line with the option inserted: "sonde record --remote-files -d 10". */
static void add_option(const struct session *s, char *text, size_t len)
{
	const char *command = s->args->command, *name = command ? strchr(command, ' ') : NULL;
	int head = name ? (int)(name + 1 - command + strcspn(name + 1, " ")) : 0;

	if (!command || strncmp(command, "sonde ", 6))
		snprintf(text, len, "sonde record --remote-files ..");
	else
		snprintf(text, len, "%s%.*s --remote-files%.300s%s", secure_getenv("SUDO_UID") ? "sudo " : "", head,
			 command, command + head, strlen(command + head) > 300 ? " .." : "");
}

static void report_files(struct session *s, const struct remote_files *r)
{
	char processes[256], command[512], help[700], others[64] = "";

	list_processes(r, processes, sizeof(processes));
	add_option(s, command, sizeof(command));
	if (r->n_files > 1)
		snprintf(others, sizeof(others), " and %u more file%s", r->n_files - 1, r->n_files == 2 ? "" : "s");
	if (r->is_denied)
		snprintf(help, sizeof(help), "%s",
			 !strcmp(r->fs, "FUSE") ? "It is mounted without allow_other: mount it with -o allow_other" :
						  "Only that user may read them");
	else
		snprintf(
			help, sizeof(help),
			"`%s` examines such files; with \"remote-files = yes\" in /etc/sonde.conf every recording does so",
			command);
	session__warn_of(s, r->account, "%s%s: not examined%s: %s on %s%s; mapped by %s. %s", r->path, others,
			 is_python(r->path) ? ", so that Python stacks are missing" :
					      ", and no calls into it are traced",
			 r->n_files > 1 ? "they lie" : "it lies", r->fs,
			 r->is_denied ? ": permission denied" : ", whose server may never answer",
			 *processes ? processes : "no process any more", help);
}

void remote__report(struct session *s)
{
	for (const struct remote_files *r = s->remote; r; r = r->next)
		report_files(s, r);
	remote__free(s);
}

void remote__free(struct session *s)
{
	struct remote_files *next;

	for (struct remote_files *r = s->remote; r; r = next) {
		next = r->next;
		free(r);
	}
	s->remote = NULL;
}
