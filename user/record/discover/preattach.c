// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probes libraries before any process maps them, so that there is no attach gap: those that the dynamic linker
 * would find, CUDA's usual folders, and what pip installed beside Pythons that are installed or run. Only files
 * with names that the chosen families probe, and only a limited number.
 *
 * They are probed one by one after tracing has begun, which would otherwise begin a tenth of a second later; with
 * `-- CMD` before the command runs. A process that maps one of them meanwhile has an attach gap, which is counted.
 *
 * The folders belong to users, so a child without privileges searches them. The child ends itself if it takes too
 * long, because under sudo it has the user's account and the worker may not kill it. The listing is limited, too: a
 * library that is not found is probed when a process maps it.
 */
#include "attach/attacher_wire.h"
#include "elf/ldcache.h"
#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/drain/losses.h"
#include "record/examine/examine.h"
#include "record/parts.h"
#include "sandbox/privileges.h"
#include "sandbox/usage.h"
#include "util/array.h"
#include "util/file.h"
#include "util/signals.h"
#include "util/test_switch.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREATTACH_MAX 32 /* files; each may need a link for every program */
#define ROOTS_MAX     64
/* In all folders together: names that are listed, and matching files that are examined. */
#define LISTED_MAX   20000
#define EXAMINED_MAX 1000
/* Limit of the time that the search takes. */
#define PATIENCE_S  3
#define PATIENCE_NS (PATIENCE_S * 1000000000ULL)

static const char *const folders[] = {
	"/usr/local/cuda*/lib64",
	"/usr/local/cuda*/targets/*/lib",
	"/opt/cuda/lib64",
	"/opt/cuda/targets/*/lib",
	"/usr/lib/python3/dist-packages/nvidia/*/lib",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"/root/.local/lib/python3*/site-packages/nvidia/*/lib",
	"/home/*/.local/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"/root/*/lib/python3*/site-packages/nvidia/*/lib",
	"/home/*/*/lib/python3*/site-packages/nvidia/*/lib",
};

struct preattach {
	struct session *s;
	char *roots[ROOTS_MAX]; /* .../site-packages of running Pythons */
	u32 n_roots;
	struct preattach_file {
		char *path;
		int fd;
	} files[PREATTACH_MAX];
	u32 n, next; /* next: the file to be probed next */
	u32 examined;
	/* the child that searches; sock -1: it has ended */
	int sock;
	pid_t pid;
	u64 until; /* ns: it is abandoned then; 0: it does not search yet */
};

/* Static, because the callbacks of glob(3) have no argument. */
static u32 listed;

static struct dirent *next_listed(void *dir)
{
	return listed < LISTED_MAX && ++listed ? readdir(dir) : NULL;
}

static void *open_listed(const char *path)
{
	return listed < LISTED_MAX ? opendir(path) : NULL;
}

static void close_listed(void *dir)
{
	closedir(dir);
}

/*
 * Returns whether the file may be probed. Root's files always may. A file of another user may not with
 * --trusted-files, as no process of that user has mapped it, nor with --scope user if that is not the user's own.
 */
static bool may_be_probed(const struct session *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return !st.st_uid || (!s->args->trusted_files && (!s->args->one_user || st.st_uid == s->args->user));
}

static void add_file(struct preattach *a, const char *path)
{
	char real[PATH_MAX];
	int fd;

	if (a->n >= PREATTACH_MAX || !session__program_for(a->s, path) || a->examined >= EXAMINED_MAX)
		return;
	a->examined++;
	if (!realpath(path, real) || !session__program_for(a->s, real))
		return;
	for (u32 i = 0; i < a->n; i++)
		if (!strcmp(a->files[i].path, real))
			return;
	fd = file__open_regular(real);
	if (fd < 0)
		return;
	if (!may_be_probed(a->s, fd)) {
		close(fd);
		return;
	}
	a->files[a->n] = (struct preattach_file){ strdup(real), fd };
	if (a->files[a->n].path)
		a->n++;
	else
		close(fd);
}

static void on_cached(const char *path, void *arg)
{
	add_file(arg, path);
}

/* Adds the libraries (lib*.so*) in the folders that match the pattern; add_file() chooses by their names. */
static void search_folders(struct preattach *a, const char *pattern)
{
	char files[PATH_MAX];
	glob_t g = {
		.gl_opendir = open_listed,
		.gl_readdir = next_listed,
		.gl_closedir = close_listed,
		.gl_lstat = lstat,
		.gl_stat = stat,
	};

	if (snprintf(files, sizeof(files), "%s/lib*.so*", pattern) >= (int)sizeof(files))
		return;
	if (!glob(files, GLOB_NOSORT | GLOB_ALTDIRFUNC, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_file(a, g.gl_pathv[i]);
	globfree(&g);
}

/* For a mapping of .../site-packages/x/y.so: adds .../site-packages, once, where that Python's packages are. */
void preattach__note(struct session *s, const char *path)
{
	static const char *const names[] = { "/site-packages/", "/dist-packages/" };
	struct preattach *a = s->preattach;

	for (u32 i = 0; a && !a->until && i < ARRAY_LEN(names); i++) {
		const char *at = strstr(path, names[i]);
		size_t len = at ? (size_t)(at - path) + strlen(names[i]) - 1 : 0;
		u32 k = 0;

		/* glob characters in the path would be expanded */
		if (!at || a->n_roots == ROOTS_MAX || strcspn(path, "*?[\\") < len)
			continue;
		while (k < a->n_roots && (strlen(a->roots[k]) != len || memcmp(a->roots[k], path, len)))
			k++;
		if (k == a->n_roots && (a->roots[k] = strndup(path, len)))
			a->n_roots++;
	}
}

static bool probes_libraries(const struct session *s)
{
	PROGRAMS_EACH(p, &s->embedded.probes)
		if (p->enabled && p->section.library[0])
			return true;
	return false;
}

static void search_all(struct preattach *a)
{
	char pattern[PATH_MAX];

	for (u32 i = 0; i < a->n_roots; i++)
		if (snprintf(pattern, sizeof(pattern), "%s/nvidia/*/lib", a->roots[i]) < (int)sizeof(pattern))
			search_folders(a, pattern);
	ldcache__each(on_cached, a);
	for (u32 i = 0; i < ARRAY_LEN(folders); i++)
		search_folders(a, folders[i]);
}

/* Receives the folders of running Pythons; false: the parent has ended. */
static bool receive_roots(struct preattach *a, int sock)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	while ((n = message__receive(sock, path, sizeof(path), &fd)) > 1)
		if (!path[n - 1] && a->n_roots < ROOTS_MAX && (a->roots[a->n_roots] = strdup(path)))
			a->n_roots++;
	return n == 1;
}

/* Sends each file's path with its descriptor; at the end an empty path, and whether something was left out. */
static void __attribute__((noreturn)) search(struct preattach *a, int sock)
{
	int err = 0;
	char end[2];

	prctl(PR_SET_NAME, "sonde-search");
	if (privileges__user())
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* only the parent reads the rings */
	drain__forget(&a->s->drain);
	attacher__close_all_but(&sock, 1);
	if (!receive_roots(a, sock))
		_exit(0);
	signals__end_after(PATIENCE_S);
	search_all(a);
	for (u32 i = 0; i < a->n && !err; i++)
		err = message__send(sock, a->files[i].path, strlen(a->files[i].path) + 1, a->files[i].fd);
	end[0] = '\0';
	end[1] = listed >= LISTED_MAX ? 'l' : a->examined >= EXAMINED_MAX ? 'e' : '\0';
	if (err || message__send(sock, end, sizeof(end), -1))
		_exit(1);
	_exit(0);
}

static void warn_abandoned(struct session *s)
{
	session__warn(
		s, "the search for CUDA's libraries on disk was abandoned: they are probed when a process maps them");
}

/* Receives one file from the child. false: there are no more, or the child has not answered in time. */
static bool receive_file(struct preattach *a)
{
	struct pollfd p = { .fd = a->sock, .events = POLLIN };
	u64 now = session__now(a->s);
	int wait_ms = now < a->until ? (int)((a->until - now) / 1000000) : 0, fd = -1;
	char path[PATH_MAX];
	ssize_t n = poll(&p, 1, wait_ms) > 0 ? message__receive(a->sock, path, sizeof(path), &fd) : 0;

	if (n > 0 && !path[n - 1] && *path && fd >= 0 && a->n < PREATTACH_MAX && (a->files[a->n].path = strdup(path))) {
		a->files[a->n++].fd = fd;
		return true;
	}
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		warn_abandoned(a->s);
	else if (n == 2 && path[1])
		session__warn(
			a->s,
			"more than %d files in the folders where CUDA's libraries may lie: those that were not examined "
			"are probed when a process maps them",
			path[1] == 'l' ? LISTED_MAX : EXAMINED_MAX);
	return false;
}

static void end_search(struct preattach *a)
{
	if (a->sock < 0)
		return;
	close(a->sock);
	a->sock = -1;
	/* fails under sudo */
	kill(a->pid, SIGKILL);
	a->s->searcher = a->pid;
	preattach__reap(a->s);
}

void preattach__reap(struct session *s)
{
	if (s->searcher && usage__wait(s->searcher, NULL, WNOHANG))
		s->searcher = 0;
}

void preattach__find(struct session *s)
{
	struct preattach *a;
	int sock[2];

	/*
	 * Where each probe site has a perf event the kernel closes these one after the other, 30 to 50 ms each: a CUDA
	 * runtime that no process maps would make the recording end 12 s late.
	 */
	if (!probes_libraries(s) || session__detaches_slowly(s))
		return;
	a = s->preattach = calloc(1, sizeof(*a));
	if (!a || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		warn_abandoned(s);
		free(a);
		s->preattach = NULL;
		return;
	}
	a->s = s;
	a->sock = -1;
	listed = 0;
	a->pid = usage__fork();
	if (!a->pid) {
		usage__forget();
		search(a, sock[1]);
	}
	close(sock[1]);
	if (a->pid < 0) {
		close(sock[0]);
		warn_abandoned(s);
	} else {
		a->sock = sock[0];
	}
}

void preattach__search(struct session *s)
{
	struct preattach *a = s->preattach;
	int err = 0;

	if (!a || a->sock < 0)
		return;
	a->until = session__now(s) + PATIENCE_NS;
	for (u32 i = 0; i < a->n_roots && !err; i++)
		err = message__send(a->sock, a->roots[i], strlen(a->roots[i]) + 1, -1);
	if (err || message__send(a->sock, "", 1, -1)) {
		warn_abandoned(s);
		end_search(a);
	}
}

bool preattach__is_ready(struct session *s)
{
	const struct preattach *a = s->preattach;

	/* one after the other, without a wait for a file that takes long */
	return a && !examiner__is_pending(s->examiner) &&
	       (a->sock < 0 || message__pending(a->sock) || session__now(s) >= a->until);
}

static void receive_files(struct preattach *a)
{
	while (receive_file(a))
		;
	end_search(a);
}

void preattach__attach_next(struct session *s)
{
	struct preattach *a = s->preattach;

	if (!a)
		return;
	if (a->sock >= 0)
		receive_files(a);
	if (a->next == a->n) {
		preattach__free(s);
		return;
	}
	if (s->time.started && test_switch__is_set("late-preattach"))
		sleep(1);
	/* ends the charging of a user: what follows is charged to none, as no process has mapped this file */
	shares__settle(s);
	objects__preattach(s, a->files[a->next].path, a->files[a->next].fd);
	close(a->files[a->next].fd);
	free(a->files[a->next++].path);
}

void preattach__mapped(struct session *s, struct object *o, const struct mapping *m)
{
	u64 first = m->time > s->time.started ? m->time : s->time.started;

	if (!s->time.started || !o->is_preattached || first >= o->live || !process__was_selected(s, m->pid))
		return;
	for (u32 id = 0; id < FAMILY_MAX; id++)
		if (o->families & FAMILY_BIT(id))
			losses__add_of(s, m->pid, id, LOSS_ATTACH_GAP, 1, first, o->live, o->id);
	/* the gap begins with the first mapping: later ones are part of it */
	o->is_preattached = false;
}

void preattach__free(struct session *s)
{
	struct preattach *a = s->preattach;

	if (a)
		end_search(a);
	for (u32 i = 0; a && i < a->n_roots; i++)
		free(a->roots[i]);
	for (; a && a->next < a->n; a->next++) {
		close(a->files[a->next].fd);
		free(a->files[a->next].path);
	}
	free(a);
	s->preattach = NULL;
}
