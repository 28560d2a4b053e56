// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `record --inject`: before it begins, the shim is loaded into what is to be traced and runs already. */
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/shim.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/inject.h"
#include "process/procs.h"
#include "record/cgroup.h"
#include "util/array.h"

#define FAMILIES_MAX 1024
#define DEPTH_MAX    64 /* of parents */

const char *record_inject__families(const char *families)
{
	static char with[FAMILIES_MAX];

	if (shim__is_needed(families))
		return families;
	if (!families)
		return "+gpu";
	/* "A,B" replaces the default set, "+A,+B" adds to it */
	snprintf(with, sizeof(with), "%s,%sgpu", families, *families == '+' ? "+" : "");
	return with;
}

struct pids {
	u32 *list;
	u32 n;
};

static void add(u32 pid, void *arg)
{
	struct pids *p = arg;

	if (!array__push(p->list, p->n, pid))
		return;
}

static bool has(const u32 *list, u32 n, u32 pid)
{
	for (u32 i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* "PID (NAME) S PPID .." */
static u32 parent_of(u32 pid)
{
	char path[64], text[512], *p;
	unsigned int parent;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	p = strrchr(text, ')');
	return p && sscanf(p + 1, " %*c %u", &parent) == 1 ? parent : 0;
}

static bool in_tree(const struct record_args *a, u32 pid)
{
	for (u32 i = 0; pid && i < DEPTH_MAX; i++, pid = parent_of(pid))
		if (has(a->pids.list, a->pids.n, pid))
			return true;
	return false;
}

static bool has_name(const struct record_args *a, u32 pid)
{
	char path[64], name[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(name, sizeof(name), f))
			*name = '\0';
		fclose(f);
	}
	name[strcspn(name, "\n")] = '\0';
	for (u32 i = 0; i < a->session.n_comms; i++)
		if (!fnmatch(a->comms[i], name, 0))
			return true;
	return false;
}

static void note_cuda(const struct mapping *m, void *arg)
{
	const char *slash = strrchr(m->path, '/');

	if (slash && (!strncmp(slash, "/libcuda.so", 11) || !strncmp(slash, "/libcudart.so", 13)))
		*(bool *)arg = true;
}

static bool has_cuda(u32 pid)
{
	bool cuda = false;

	procs__each_mapping_of(pid, note_cuda, &cuda);
	return cuda;
}

/* As the recording selects: of several kinds of filters a process must pass each. */
static bool selected(const struct record_args *a, const struct pids *in_cgroups, u32 pid)
{
	if (a->session.n_pids && !in_tree(a, pid))
		return false;
	if (a->session.n_comms && !has_name(a, pid))
		return false;
	if (a->session.n_cgroups && !has(in_cgroups->list, in_cgroups->n, pid))
		return false;
	/* processes named by -p may load CUDA later; of others only those that have it are selected */
	return has(a->pids.list, a->pids.n, pid) || has_cuda(pid);
}

static void find(const struct record_args *a, struct pids *out)
{
	static struct cgroup_place place; /* large */
	struct pids in_cgroups = {};
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char err[512];

	for (u32 i = 0; i < a->session.n_cgroups; i++)
		if (!cgroup__find(&place, a->cgroups[i], err, sizeof(err)))
			cgroup__each_process(&place, add, &in_cgroups);
	while (dir && (d = readdir(dir))) {
		u32 pid = (u32)strtoul(d->d_name, NULL, 10);

		if (pid && pid != (u32)getpid() && pid != (u32)a->launch.pid && selected(a, &in_cgroups, pid))
			add(pid, out);
	}
	if (dir)
		closedir(dir);
	free(in_cgroups.list);
}

void record_inject__run(struct record_args *a)
{
	const struct inject_options options = { .remote_files = a->session.remote_files };
	struct pids pids = {};
	char shim[PATH_MAX], why[512];
	u32 left_out = 0;

	if (!a->inject)
		return;
	if (shim__find(shim, sizeof(shim))) {
		cmd__error(
			"libsonde-cupti.so is neither beside sonde nor in ../lib/sonde: there will be no device times");
		a->not_injected++;
		return;
	}
	find(a, &pids);
	if (!pids.n && (a->session.n_comms || a->session.n_cgroups || a->session.n_pids > !!a->launch.pid))
		cmd__error("--inject: no process that the filters name maps libcuda or libcudart");
	for (u32 i = 0; i < pids.n; i++) {
		struct inject_result r;

		if (!scope__allows(&a->scope, pids.list[i], why, sizeof(why))) {
			left_out++;
			continue;
		}
		inject__process(pids.list[i], shim, &options, &r);
		if (r.outcome != INJECT_REFUSED && r.outcome != INJECT_FAILED)
			continue;
		cmd__error("--inject: process %u will have no device times: %s", pids.list[i], r.why);
		a->not_injected++;
	}
	if (left_out)
		cmd__error("--inject: %s (%u in all will have no device times)", why, left_out);
	free(pids.list);
}
