// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/select/cgroup.h"

#include <errno.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* One line of mountinfo: "36 35 98:0 /root /point options [..] - type source super-options" */
struct mount {
	unsigned int maj, min;
	char point[3072];
	char type[32];
	char options[512]; /* of the super block: for cgroup v1 its controllers */
};

static bool parse_mount(const char *line, struct mount *m)
{
	const char *dash = strstr(line, " - ");

	return dash && sscanf(line, "%*u %*u %u:%u %*s %3071s", &m->maj, &m->min, m->point) == 3 &&
	       sscanf(dash, " - %31s %*s %511s", m->type, m->options) == 2;
}

/* The first mount for which fn returns true. */
static bool find_mount(struct mount *m, bool (*fn)(const struct mount *m, const void *arg), const void *arg)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (f && !found && getline(&line, &size, f) > 0)
		found = parse_mount(line, m) && fn(m, arg);
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool is_v2(const struct mount *m, const void *arg)
{
	return !strcmp(m->type, "cgroup2");
}

static bool is_device(const struct mount *m, const void *arg)
{
	const struct stat *st = arg;

	return m->maj == major(st->st_dev) && m->min == minor(st->st_dev);
}

static bool has_option(const char *options, const char *item, size_t n)
{
	for (const char *p = options; *p; p += strcspn(p, ","), p += *p == ',')
		if (!strncmp(p, item, n) && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

/* Returns whether all items of "cpu,cpuacct" are among the mount's options. */
static bool all_options(const char *options, const char *items)
{
	if (!*items)
		return false;
	for (const char *p = items; *p; p += strcspn(p, ","), p += *p == ',')
		if (!has_option(options, p, strcspn(p, ",")))
			return false;
	return true;
}

/* The number of a v1 hierarchy: /proc/self/cgroup lists "NUMBER:CONTROLLERS:PATH". 0: not found. */
static u32 v1_hierarchy(const struct stat *st)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	u32 number, found = 0;
	char *line = NULL, items[512];
	struct mount m;
	size_t size = 0;

	if (!find_mount(&m, is_device, st)) {
		if (f)
			fclose(f);
		return 0;
	}
	while (f && !found && getline(&line, &size, f) > 0)
		if (sscanf(line, "%u:%511[^:]", &number, items) == 2 && all_options(m.options, items))
			found = number;
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool is_cgroup(const struct statfs *fs)
{
	return fs->f_type == CGROUP2_SUPER_MAGIC || fs->f_type == CGROUP_SUPER_MAGIC;
}

/*
 * Finds the directory: the argument itself if it is a cgroup, else a path below the cgroup v2 mount ("/" is its
 * root).
 */
static int find_directory(struct cgroup_ref *out, const char *argument, struct stat *st, struct statfs *fs)
{
	bool is_path = *argument == '/' && !stat(argument, st) && !statfs(argument, fs);
	struct mount m;

	snprintf(out->path, sizeof(out->path), "%s", argument);
	if (is_path && is_cgroup(fs))
		return 0;
	if (!find_mount(&m, is_v2, NULL))
		return is_path ? 0 : -ENOENT;
	if ((size_t)snprintf(out->path, sizeof(out->path), "%s/%s", m.point, argument + (*argument == '/')) >=
	    sizeof(out->path))
		return -ENAMETOOLONG;
	if (!stat(out->path, st) && !statfs(out->path, fs))
		return 0;
	/* it exists but is not a cgroup, which the caller reports */
	return is_path && !stat(argument, st) && !statfs(argument, fs) ? 0 : -ENOENT;
}

int cgroup__find(struct cgroup_ref *out, const char *argument, char *err, size_t len)
{
	struct statfs fs;
	struct stat st;
	int ret = *argument ? find_directory(out, argument, &st, &fs) : -ENOENT;

	if (ret) {
		snprintf(err, len,
			 "--cgroup '%s': no such cgroup: give a directory of a cgroup file system, or a path below the "
			 "cgroup v2 mount as /proc/PID/cgroup shows it",
			 argument);
		return ret;
	}
	if (!S_ISDIR(st.st_mode) || !is_cgroup(&fs)) {
		snprintf(err, len, "--cgroup '%s': %s is not a cgroup", argument,
			 S_ISDIR(st.st_mode) ? "this directory" : "this");
		return -ENOTDIR;
	}
	/* the inode number in kernfs is the cgroup's id */
	out->id = st.st_ino;
	out->hierarchy = fs.f_type == CGROUP2_SUPER_MAGIC ? 0 : v1_hierarchy(&st);
	if (!out->hierarchy && fs.f_type == CGROUP_SUPER_MAGIC) {
		snprintf(err, len, "--cgroup '%s': /proc/self/cgroup does not list its cgroup v1 hierarchy", argument);
		return -ENOTSUP;
	}
	return 0;
}

static void read_processes(const char *dir, void (*fn)(u32 pid, void *arg), void *arg)
{
	char path[4352];
	unsigned int pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && fscanf(f, "%u", &pid) == 1)
		if (pid)
			fn(pid, arg);
	if (f)
		fclose(f);
}

void cgroup__each_process(const struct cgroup_ref *c, void (*fn)(u32 pid, void *arg), void *arg)
{
	char *const paths[] = { (char *)c->path, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR, NULL);
	FTSENT *e;

	while (fts && (e = fts_read(fts)))
		if (e->fts_info == FTS_D)
			read_processes(e->fts_path, fn, arg);
	if (fts)
		fts_close(fts);
}
