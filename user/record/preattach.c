// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probes libraries before any process maps them, so that there is no attach gap: those that the dynamic linker
 * would find, CUDA's usual folders, and what pip installed beside Pythons that are installed or run. Only files
 * with names that the chosen families probe, and only a limited number.
 *
 * The folders belong to users, so a child without privileges searches them. The child is killed if it takes too
 * long, and the listing is limited: a library that is not found is probed when a process maps it.
 */
#include "attach/attacher_wire.h"
#include "attach/vmas.h"
#include "elf/ldcache.h"
#include "record/internal.h"
#include "record/shares.h"
#include "sandbox/privileges.h"
#include "sandbox/usage.h"
#include "util/array.h"
#include "util/file.h"

#include <dirent.h>
#include <errno.h>
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
/* Limit of the time between two files that are found. */
#define PATIENCE_MS 3000

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
	u32 n, examined;
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

static bool matches_a_program(const struct session *s, const char *path)
{
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++) {
		const struct program *p = &s->embedded.probes.programs[i];

		if (p->enabled && section__matches_library(&p->section, path))
			return true;
	}
	return false;
}

/*
 * Returns whether the file may be probed: a file of another user not with --scope user, nor with --trusted-files,
 * because no process maps it yet.
 */
static bool may_be_probed(const struct session *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return !st.st_uid || (!s->args->trusted_files && (!s->args->one_user || st.st_uid == s->args->user));
}

static void add(struct preattach *a, const char *path)
{
	char real[PATH_MAX];
	int fd;

	if (a->n >= PREATTACH_MAX || !matches_a_program(a->s, path) || a->examined >= EXAMINED_MAX)
		return;
	a->examined++;
	if (!realpath(path, real) || !matches_a_program(a->s, real))
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
	add(arg, path);
}

/* Adds the matching files of the folders, which are chosen by their names. */
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
			add(a, g.gl_pathv[i]);
	globfree(&g);
}

/* Adds the folder of .../site-packages/x/y.so, once each: the packages of that Python are there. */
static void on_mapping(const struct mapping *m, void *arg)
{
	static const char *const names[] = { "/site-packages/", "/dist-packages/" };
	const char *path = m->path;
	struct preattach *a = arg;

	for (u32 i = 0; i < ARRAY_LEN(names); i++) {
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
	for (u32 i = 0; i < s->embedded.probes.n_programs; i++)
		if (s->embedded.probes.programs[i].enabled && s->embedded.probes.programs[i].section.library[0])
			return true;
	return false;
}

static void find(struct preattach *a)
{
	struct session *s = a->s;
	char pattern[PATH_MAX];

	vmas__scan(s->attacher, probes__program(&s->embedded.probes, "core_vmas"), 0, on_mapping, a);
	for (u32 i = 0; i < a->n_roots; i++)
		if (snprintf(pattern, sizeof(pattern), "%s/nvidia/*/lib", a->roots[i]) < (int)sizeof(pattern))
			search_folders(a, pattern);
	ldcache__each(on_cached, a);
	for (u32 i = 0; i < ARRAY_LEN(folders); i++)
		search_folders(a, folders[i]);
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
	rings__forget(a->s->drain.rings);
	a->s->drain.rings = NULL;
	attacher__forked(a->s->attacher);
	find(a);
	for (u32 i = 0; i < a->n && !err; i++)
		err = message__send(sock, a->files[i].path, strlen(a->files[i].path) + 1, a->files[i].fd);
	end[0] = '\0';
	end[1] = listed >= LISTED_MAX ? 'l' : a->examined >= EXAMINED_MAX ? 'e' : '\0';
	if (err || message__send(sock, end, sizeof(end), -1))
		_exit(1);
	_exit(0);
}

/* Receives one file from the child. false: there are no more, or the child has not answered in time. */
static bool take(struct preattach *a, int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char path[PATH_MAX];
	int fd = -1;
	ssize_t n = poll(&p, 1, PATIENCE_MS) > 0 ? message__receive(sock, path, sizeof(path), &fd) : 0;

	if (n > 0 && !path[n - 1] && *path && fd >= 0 && a->n < PREATTACH_MAX && (a->files[a->n].path = strdup(path))) {
		a->files[a->n++].fd = fd;
		return true;
	}
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		session__warn(
			a->s,
			"the search for CUDA's libraries on disk was abandoned: they are probed when a process maps them");
	else if (n == 2 && path[1])
		session__warn(
			a->s,
			"more than %d files in the folders where CUDA's libraries may lie: those that were not examined "
			"are probed when a process maps them",
			path[1] == 'l' ? LISTED_MAX : EXAMINED_MAX);
	return false;
}

void preattach__find(struct session *s)
{
	struct preattach *a;
	int sock[2];
	pid_t pid;

	if (!probes_libraries(s))
		return;
	a = s->preattach = calloc(1, sizeof(*a));
	if (!a || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return;
	a->s = s;
	listed = 0;
	pid = fork();
	if (!pid) {
		usage__forget();
		search(a, sock[1]);
	}
	close(sock[1]);
	while (pid > 0 && take(a, sock[0]))
		;
	close(sock[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

void preattach__attach(struct session *s)
{
	struct preattach *a = s->preattach;

	/* these files are not charged to a user, as no process has mapped them */
	shares__settle(s);
	for (u32 i = 0; a && i < a->n; i++) {
		objects__preattach(s, a->files[i].path, a->files[i].fd);
		close(a->files[i].fd);
		free(a->files[i].path);
	}
	free(a);
	s->preattach = NULL;
}
