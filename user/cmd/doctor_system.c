// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports mounts, namespaces and settings from /proc, which needs no privilege. */
#include "cmd/doctor.h"

#include "util/array.h"
#include "util/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mounts that matter here, from /proc/self/mountinfo. */
struct mounts {
	char tracefs[256], bpffs[256], cgroup2[256], cgroup1[256], sysfs[256]; /* mount points; "": not mounted */
	char hidepid[32]; /* mount option of /proc; "": nothing is hidden */
};

static void set_mount_point(char *mount_point, size_t len, const char *where)
{
	if (!*mount_point)
		snprintf(mount_point, len, "%s", where);
}

/* "ID PARENT MAJ:MIN ROOT WHERE OPTIONS [FIELDS..] - TYPE SOURCE SUPER-OPTIONS" */
static void read_mount(struct mounts *m, char *line)
{
	char where[256], type[32], super[1024] = "", *rest = strstr(line, " - "), *hide;

	if (!rest || sscanf(line, "%*s %*s %*s %*s %255s", where) != 1 ||
	    sscanf(rest, " - %31s %*s %1023s", type, super) < 1)
		return;
	if (!strcmp(type, "tracefs"))
		set_mount_point(m->tracefs, sizeof(m->tracefs), where);
	else if (!strcmp(type, "bpf"))
		set_mount_point(m->bpffs, sizeof(m->bpffs), where);
	else if (!strcmp(type, "cgroup2"))
		set_mount_point(m->cgroup2, sizeof(m->cgroup2), where);
	else if (!strcmp(type, "cgroup"))
		set_mount_point(m->cgroup1, sizeof(m->cgroup1), where);
	else if (!strcmp(type, "sysfs"))
		set_mount_point(m->sysfs, sizeof(m->sysfs), where);
	if (strcmp(type, "proc") || strcmp(where, "/proc"))
		return;
	/* The last mount on /proc covers earlier ones. */
	hide = strstr(super, "hidepid=");
	snprintf(m->hidepid, sizeof(m->hidepid), "%.*s", hide ? (int)strcspn(hide + 8, ",") : 0, hide ? hide + 8 : "");
	if (!strcmp(m->hidepid, "0") || !strcmp(m->hidepid, "off"))
		*m->hidepid = '\0';
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
	char text[300];

	read_mounts(&m);
	if (!access("/proc/self/stat", R_OK)) {
		snprintf(text, sizeof(text), "hidepid=%s", m.hidepid);
		doctor__check(d, "mounts", "/proc", *m.hidepid ? text : "open",
			      !*m.hidepid ? "all users can read all processes" :
			      geteuid()	  ? "other users' processes are hidden from this one" :
					    "irrelevant for root: a recording reads it before it drops root");
	} else {
		doctor__check(d, "mounts", "/proc", "not mounted", "no process can be found");
		doctor__missing(d, "/proc", "no process can be found", "mount -t proc proc /proc");
	}
	if (!*m.sysfs) {
		doctor__check(d, "mounts", "/sys", "not mounted", "the kernel's types and cgroups are below it");
		doctor__missing(d, "/sys", "the kernel's types can't be read", "mount -t sysfs sysfs /sys");
	}
	cgroups(d, &m);
	doctor__check(d, "mounts", "tracefs", *m.tracefs ? m.tracefs : "not mounted",
		      *m.tracefs ? "sonde does not need it" :
				   "sonde does not need it; for others: mount -t tracefs tracefs /sys/kernel/tracing");
	doctor__check(d, "mounts", "bpffs", *m.bpffs ? m.bpffs : "not mounted",
		      *m.bpffs ? "sonde does not need it" :
				 "sonde does not need it; for others: mount -t bpf bpf /sys/fs/bpf");
}

/* 0xEFFFFFFC is PROC_PID_INIT_INO of linux/proc_ns.h, the inode of the host's pid namespace. */
static void namespaces(struct doctor *d)
{
	bool first, known;
	struct stat st;

	known = !stat("/proc/self/ns/pid", &st);
	first = known && st.st_ino == 0xEFFFFFFC;
	doctor__check(d, "privileges", "pid namespace",
		      !known ? "unknown" :
		      first  ? "the host's" :
			       "not the host's",
		      first ? "processes have the kernel's numbers" :
			      "processes have other numbers here than in the kernel");
	d->other_pids = known && !first;
	if (d->other_pids)
		doctor__missing(d, "the host's pid namespace",
				"recording refuses to begin: it would name the wrong processes",
				"docker run --pid=host, or nsenter -t 1 -p");
}

/* A number below /proc/sys and its effect on a recording. */
static const struct setting {
	const char *name;
	const char *path;
	/* returns the effect of a value; sets *bad if it should be changed */
	const char *(*meaning)(long value, bool *bad);
	const char *mend;
} settings[];

static const char *jit(long value, bool *bad)
{
	*bad = !value;
	return value ? "programs are compiled" : "programs are interpreted: each hit costs several times as much";
}

static const char *bpf_stats(long value, bool *bad)
{
	*bad = value;
	return value ? "the kernel times each run of each program: each hit costs some 50 ns more" :
		       "the kernel does not time programs";
}

static const char *unprivileged_bpf(long value, bool *bad)
{
	return value ? "irrelevant: sonde loads its programs as root" :
		       "users may load programs, too; irrelevant for sonde";
}

static const char *perf_paranoid(long value, bool *bad)
{
	return "irrelevant for root (CAP_PERFMON)";
}

static const char *kptr(long value, bool *bad)
{
	return value > 1 ? "does not affect tracing; kernel addresses are hidden from all users" :
			   "irrelevant for tracing";
}

static const char *ptrace(long value, bool *bad)
{
	return value > 2 ? "no process may ptrace: tracing does not need it" : "irrelevant: tracing does not ptrace";
}

static const struct setting settings[] = {
	{ "net.core.bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable", jit, "sysctl -w net.core.bpf_jit_enable=1" },
	{ "kernel.bpf_stats_enabled", "/proc/sys/kernel/bpf_stats_enabled", bpf_stats,
	  "sysctl -w kernel.bpf_stats_enabled=0" },
	{ "kernel.unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled", unprivileged_bpf, NULL },
	{ "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid", perf_paranoid, NULL },
	{ "kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict", kptr, NULL },
	{ "kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", ptrace, NULL },
};

/* Most settings are readable without root, so all users get the full list. */
static void sysctls(struct doctor *d)
{
	for (u32 i = 0; i < ARRAY_LEN(settings); i++) {
		const struct setting *s = &settings[i];
		const char *meaning;
		char value[32];
		bool bad = false;

		if (!*file__first_line(s->path, value, sizeof(value))) {
			if (!access(s->path, F_OK))
				doctor__check(d, "settings", s->name, "not allowed", "this user may not read it");
			continue;
		}
		meaning = s->meaning(strtol(value, NULL, 10), &bad);
		doctor__check(d, "settings", s->name, value, meaning);
		if (bad)
			doctor__missing(d, s->name, meaning, s->mend);
	}
}

void doctor__system(struct doctor *d)
{
	namespaces(d);
	mounts(d);
	sysctls(d);
}
