// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports mounts, namespaces and settings from /proc, which needs no privilege. */
#include "cmd/doctor.h"

#include "util/array.h"
#include "util/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The mounts that matter here, from /proc/self/mountinfo. */
struct mounts {
	char cgroup2[256], cgroup1[256]; /* mount points; "": not mounted */
};

static void set_mount_point(char *mount_point, size_t len, const char *where)
{
	if (!*mount_point)
		snprintf(mount_point, len, "%s", where);
}

/* "ID PARENT MAJ:MIN ROOT WHERE OPTIONS [FIELDS..] - TYPE SOURCE SUPER-OPTIONS" */
static void read_mount(struct mounts *m, char *line)
{
	char where[256], type[32], *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*s %*s %*s %*s %255s", where) != 1 || sscanf(rest, " - %31s", type) != 1)
		return;
	if (!strcmp(type, "cgroup2"))
		set_mount_point(m->cgroup2, sizeof(m->cgroup2), where);
	else if (!strcmp(type, "cgroup"))
		set_mount_point(m->cgroup1, sizeof(m->cgroup1), where);
}

static void read_mounts(struct mounts *m)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		read_mount(m, line);
	free(line);
	if (f)
		fclose(f);
}

static void cgroups(struct doctor *d, const struct mounts *m)
{
	char text[600];

	snprintf(text, sizeof(text), "%s%s%s", m->cgroup2, *m->cgroup2 && *m->cgroup1 ? ", " : "", m->cgroup1);
	doctor__check(d, "mounts", "cgroup",
		      *m->cgroup2 && *m->cgroup1 ? "v2 and v1" :
		      *m->cgroup2		 ? "v2" :
		      *m->cgroup1		 ? "v1" :
						   "not mounted",
		      *text ? text :
			      "--cgroup can't be used; containers are recognized by /proc/PID/cgroup all the same");
	if (!*text)
		doctor__missing(d, "a cgroup file system", "record --cgroup can't be used",
				"mount -t cgroup2 cgroup2 /sys/fs/cgroup");
}

static void mounts(struct doctor *d)
{
	struct mounts m = {};

	read_mounts(&m);
	if (access("/proc/self/stat", R_OK)) {
		doctor__check(d, "mounts", "/proc", "not mounted", "no process can be found");
		doctor__missing(d, "/proc", "no process can be found", "mount -t proc proc /proc");
	}
	if (access("/sys/kernel", F_OK)) {
		doctor__check(d, "mounts", "/sys", "not mounted", "the kernel's types and cgroups are below it");
		doctor__missing(d, "/sys", "the kernel's types can't be read: nothing can be recorded",
				"mount -t sysfs sysfs /sys");
	}
	cgroups(d, &m);
}

static void namespaces(struct doctor *d)
{
	d->other_pids = !features__in_first_pid_namespace();
	doctor__check(d, "privileges", "pid namespace", d->other_pids ? "not the host's" : "the host's",
		      d->other_pids ? "processes have other numbers here than in the kernel" :
				      "processes have the kernel's numbers");
	if (d->other_pids)
		doctor__missing(d, "the host's pid namespace",
				"recording refuses to begin: it would name the wrong processes",
				"docker run --pid=host, or nsenter -t 1 -p");
}

/* Numbers below /proc/sys that make probes more expensive if they are not `good` */
static const struct setting {
	const char *name, *path;
	long good;
	const char *if_good, *if_bad, *mend;
} settings[] = {
	{ "net.core.bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable", 1, "programs are compiled",
	  "programs are interpreted: each hit costs several times as much", "sysctl -w net.core.bpf_jit_enable=1" },
	{ "kernel.bpf_stats_enabled", "/proc/sys/kernel/bpf_stats_enabled", 0, "the kernel does not time programs",
	  "the kernel times each run of each program: each hit costs some 50 ns more",
	  "sysctl -w kernel.bpf_stats_enabled=0" },
};

static void sysctls(struct doctor *d)
{
	for (u32 i = 0; i < ARRAY_LEN(settings); i++) {
		const struct setting *s = &settings[i];
		char value[32];
		bool is_good;

		if (!*file__first_line(s->path, value, sizeof(value))) {
			if (!access(s->path, F_OK))
				doctor__check(d, "settings", s->name, "not allowed", "this user may not read it");
			continue;
		}
		is_good = !strtol(value, NULL, 10) == !s->good;
		doctor__check(d, "settings", s->name, value, is_good ? s->if_good : s->if_bad);
		if (!is_good)
			doctor__missing(d, s->name, s->if_bad, s->mend);
	}
}

void doctor__system(struct doctor *d)
{
	namespaces(d);
	mounts(d);
	sysctls(d);
}
