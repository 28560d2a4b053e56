// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/load/try_families.h"

#include "record/load/refused.h"
#include "record/parts.h"
#include "util/test_switch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int attach_all(struct session *s, char *err, size_t len)
{
	const struct probes *probes = &s->embedded.probes;

	for (u32 i = 0; i < probes->n_programs; i++) {
		struct program *p = &probes->programs[i];
		int ret = 0;

		/* programs that only options need are loaded but not run */
		if (!p->enabled || p->section.kind != SECTION_TRACEPOINT || !load__is_needed(s, p))
			continue;
		if (test_switch__matches("refuse-attach", p->name))
			ret = -EINVAL;
		else if (bpf_raw_tracepoint_open(NULL, bpf_program__fd(p->prog)) < 0)
			ret = -errno;
		if (ret)
			ret = refused__unattached(s, p, ret, err, len);
		if (ret)
			return ret;
	}
	return 0;
}

/* Stores one refusal of each family: one that disables the whole family, else the first. */
static void store_refusals(const struct session *s, struct families_tried *t)
{
	for (u32 i = 0; i < s->refused.n; i++) {
		const struct refusal *from = &s->refused.programs[i];
		struct family_refusal *to = &t->refusals[from->family->id];

		if (to->programs++ && (to->is_whole_family || !from->is_whole_family))
			continue;
		to->is_whole_family = from->is_whole_family;
		snprintf(to->text, sizeof(to->text), "%s is missing: %s; reports lack %s", from->program, from->why,
			 from->is_whole_family ? "all of the family" : from->lacks);
	}
}

static int try(const struct features *f, struct families_tried *t)
{
	const u32 no_process = 0;
	struct session_args args = { .pids = &no_process, .n_pids = 1, .command = "" };
	struct session *s;
	int err = session__open_trial(&s, &args, f, t->failed, sizeof(t->failed));

	if (!s)
		return err;
	if (!err)
		err = attach_all(s, t->failed, sizeof(t->failed));
	store_refusals(s, t);
	return err;
}

struct families_tried *families__try(const struct features *f)
{
	/* cppcheck-suppress invalidFunctionArg */
	struct families_tried *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err, status;
	pid_t pid;

	if (t == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid) {
		err = try(f, t);
		if (err && !*t->failed)
			snprintf(t->failed, sizeof(t->failed), "%s", strerror(-err));
		_exit(err ? 1 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status))
		snprintf(t->failed, sizeof(t->failed), "no child for the trial");
	else if (!WEXITSTATUS(status))
		*t->failed = '\0';
	t->failed[strcspn(t->failed, "\n")] = '\0';
	return t;
}

void families_tried__free(struct families_tried *t)
{
	if (t)
		munmap(t, sizeof(*t));
}
