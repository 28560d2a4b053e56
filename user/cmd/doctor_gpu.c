// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports for which CUDA processes device times are available, and how. */
#include "cmd/doctor.h"

#include "cmd/shim.h"
#include "inject/inject.h"
#include "process/procs.h"
#include "util/file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct column columns[] = {
	{ "pid", "Pid", VALUE_U64, SHOW_PLAIN },
	{ "name", "Name", VALUE_TEXT, SHOW_PLAIN },
	{ "device_times", "Device times", VALUE_TEXT, SHOW_PLAIN },
	{ "how", "How, or why not", VALUE_TEXT, SHOW_PLAIN },
};

struct gpus {
	const struct doctor *d;
	struct table *table;
	char shim[PATH_MAX]; /* "": it is not installed */
	u32 last; /* the process described last, which has further mappings */
};

/* Names another profiler that may be using CUPTI, which serves one user at a time. */
static void add_rivals(const struct inject_status *l, char *how, size_t len)
{
	size_t used = strlen(how);

	if (*l->injection && !strstr(l->injection, "libsonde-cupti"))
		snprintf(how + used, len - used,
			 "; CUDA_INJECTION64_PATH is %.200s: while that profiler has CUPTI, the shim waits",
			 l->injection);
	else if (l->cupti && !l->has_shim)
		snprintf(how + used, len - used,
			 "; libcupti is loaded: while a profiler uses it (torch.profiler, Nsight), the shim waits");
}

static void describe(struct gpus *g, u32 pid)
{
	char path[64], name[64], how[1024];
	struct inject_status l;
	const char *can = "no";

	if (!scope__allows(&g->d->scope, pid, NULL, 0) ||
	    inject__examine(pid, g->shim, g->d->scope.remote_files == ANSWER_YES, &l))
		return;
	if (l.has_shim) {
		can = "yes";
		snprintf(how, sizeof(how), "it has the shim: sonde record -t +gpu -p %u", pid);
	} else if (!*g->shim) {
		snprintf(how, sizeof(how), "libsonde-cupti.so is neither beside sonde nor in ../lib/sonde");
	} else if (l.possible) {
		can = "once loaded";
		snprintf(how, sizeof(how), "sonde inject %u, or sonde record --inject -p %u", pid, pid);
	} else {
		snprintf(how, sizeof(how), "it can't be loaded: %.400s. Restart it with CUDA_INJECTION64_PATH=%.400s",
			 l.why, g->shim);
	}
	add_rivals(&l, how, sizeof(how));
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file__first_line(path, name, sizeof(name));
	table__add(g->table, V_U64(pid), V_TEXT(name), V_TEXT(can), V_TEXT(how));
}

static void on_mapping(const struct mapping *m, void *arg)
{
	const char *slash = strrchr(m->path, '/');
	struct gpus *g = arg;

	if (g->last == m->pid || (strncmp(slash, "/libcuda.so", 11) && strncmp(slash, "/libcudart.so", 13)))
		return;
	g->last = m->pid;
	describe(g, m->pid);
}

void doctor__gpu(struct doctor *d)
{
	static struct gpus g; /* large */
	struct procs_unread unread; /* table `runtimes` has a note about them */

	g = (struct gpus){ .d = d };
	if (shim__find(g.shim, sizeof(g.shim)))
		*g.shim = '\0';
	g.table = REPORT_TABLE(&d->out, "device_times", "Device times (family gpu) of what runs now", columns);
	procs__each_mapping(on_mapping, &g, &unread);
	g.table->machine_only = !g.table->n_rows;
}
