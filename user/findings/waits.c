// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits of which only the call and code are known: children, libraries, other calls, idleness, .. */
#include <stdio.h>
#include <string.h>

#include "findings/children.h"
#include "findings/memory_limit.h"
#include "findings/polls.h"
#include "findings/waited_for.h"
#include "findings/compute.h"
#include "model/lock_kind.h"
#include "output/text.h"
#include "util/array.h"

static const struct plain {
	enum finding_kind kind;
	const char *report; /* NULL: the one that shows such calls */
} plain[] = {
	{ FINDING_CHILD, "offcpu" },  { FINDING_GPU_WAIT, NULL }, { FINDING_NCCL, NULL },
	{ FINDING_LIBRARY, NULL },    { FINDING_CALL, "osrt" },	  { FINDING_BLOCKED, "disk" },
	{ FINDING_ASLEEP, "offcpu" }, { FINDING_MEMORY, "disk" }, { FINDING_IDLE, "offcpu" },
};

/* For waits too short for a stack, adds the user's code for which the kernel worked, by its samples. */
static void add_kernel_code(const struct finding_input *in, struct finding *f)
{
	struct computed c;

	computed__of(&c, in, f->pid, 0);
	if (*f->code.function || !c.samples || 2 * c.kernel_ns < c.ns)
		return;
	f->confidence = FINDING_ATTRIBUTED;
	finding_code__fill(&f->code, in->stacks, c.stack);
}

/* Several threads that wait in these calls wait for the lock of their address space. */
static void add_address_space(struct finding *f)
{
	if (f->threads > 1 && text__has_item("munmap mmap mprotect mremap madvise brk", ' ', f->call))
		finding__add_detail(
			f,
			"such calls and page faults wait for the lock of the address space, which all threads share");
}

/* Does the main thread wait in a queue for what another thread of its process works at? */
static bool waits_for_worker(const struct finding_input *in, const struct group *g, struct finding *f)
{
	u32 stack = (u32)group__most(in, g, GROUP_STACK).value;

	return lock_kind__of_stack(in->stacks, stack) == LOCK_KIND_QUEUE && waited_for__add_worker(in, g, f);
}

static void complete_child(const struct finding_input *in, const struct group *g, struct finding *f)
{
	bool is_followed = waited_for__follow(in, g, f);

	if (!is_followed)
		children__add(in, g, f);
	if (children__slept(in, g) || (f->is_background && !is_followed))
		group__set_idle(in, g, f);
	else if (is_followed)
		finding__waits_for_known(f);
}

static int complete(const struct finding_input *in, const struct group *g, struct finding *f, void *arg)
{
	const struct plain *p = arg;
	const char *report = p->report ? p->report : f->calls ? f->calls->report : NULL;

	snprintf(f->report, sizeof(f->report), "%s", report ? report : "offcpu");
	if (p->kind == FINDING_CHILD)
		complete_child(in, g, f);
	if (p->kind == FINDING_CALL)
		add_address_space(f);
	if (p->kind == FINDING_MEMORY)
		memory_limit__add(in, f);
	if (p->kind == FINDING_IDLE && waits_for_worker(in, g, f))
		group__set_kind(in, g, f, FINDING_RESULT);
	else if (p->kind == FINDING_IDLE)
		polls__add(in, g, f);
	if (p->kind == FINDING_ASLEEP && !in->profile->has_off_stacks)
		snprintf(
			f->advice, sizeof(f->advice), "%s",
			"`sonde record -t +syscall,lock` records in which calls it waited, `--off-cpu` in which code.");
	if (p->kind != FINDING_BLOCKED)
		return 0;
	snprintf(f->advice, sizeof(f->advice), "%s", "`sonde record -t +disk,syscall` records the reason.");
	add_kernel_code(in, f);
	return 0;
}

static int find(const struct finding_input *in, struct findings *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_LEN(plain); i++)
		err = groups__each_finding(in, plain[i].kind, out, complete, (void *)&plain[i]);
	return err;
}

FINDINGS(waits) = { .name = "waits", .decides_colours = true, .find = find };
