// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * --schedule: attaches the expensive probes when a process approaches its active steps, and detaches them when none
 * needs them. The BPF programs decide at the end of each step whether the next one is recorded (torch_step.bpf.h).
 */
#include "torch_schedule.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "attach/steering.h"
#include "core/meta.h"
#include "record/family.h"
#include "util/array.h"

#define PROCESSES_MAX 1024 /* as torch_loops has */

STEERING(attached) = {
	.map = "torch_attached",
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
};

int torch_schedule__configure(struct session *s)
{
	const struct step_schedule *schedule = session__schedule(s);
	const char *step = session__step(s);
	bool by_nvtx = session__step_range(s), counts = (schedule || step) && !by_nvtx;
	bool scheduled = schedule, is_class = !step;
	size_t n = step ? strlen(step) : 0;
	/* of processes that are older than the recording the first steps are not known */
	u64 since = session__has_command(s) ? 0 : session__now(s);
	char name[TORCH_STEP_NAME] = "";
	/* family capture compares the names of NVTX's ranges, and passes on none */
	u32 len = by_nvtx ? 1 : n && step[n - 1] == '*' ? n - 1 : n + 1;
	int err = session__set_variable(s, "torch_counts_steps", &counts, sizeof(counts))	     ?:
			  session__set_variable(s, "torch_scheduled", &scheduled, sizeof(scheduled)) ?:
			  session__set_variable(s, "torch_whole_since", &since, sizeof(since));

	if (!err && schedule)
		err = session__set_variable(s, "torch_schedule", schedule, sizeof(*schedule));
	if (err || !step)
		return err;
	memcpy(name, by_nvtx ? "" : step, len);
	return session__set_variable(s, "torch_step_name", name, sizeof(name))	     ?:
		       session__set_variable(s, "torch_step_len", &len, sizeof(len)) ?:
		       session__set_variable(s, "torch_step_by_class", &is_class, sizeof(is_class));
}

void torch_schedule__set_suspended(struct session *s, bool suspend)
{
	u32 zero = 0, attached = !suspend;

	session__map_set(s, "torch_attached", &zero, &attached, BPF_ANY);
}

static struct torch_process *process_of(struct torch_schedule *t, u32 pid)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->processes[i].pid == pid)
			return &t->processes[i];
	if (t->n == PROCESSES_MAX || !array__push(t->processes, t->n, (struct torch_process){ .pid = pid }))
		return NULL;
	return &t->processes[t->n - 1];
}

void torch_schedule__event(struct session *s, struct torch_schedule *t, const struct torch_phase *e)
{
	struct torch_process *p = process_of(t, e->event.pid);

	if (!p) {
		/* what it records counts as paused */
		session__lost(s, "torch", LOSS_MAP_FULL, 1);
		return;
	}
	active__add(&t->active, e->since, e->event.time);
	/* records of one process may come from several CPUs, in any order */
	if (p->phase && e->step < p->step)
		return;
	p->step = e->step;
	p->phase = e->phase;
	p->active_since = e->phase == STEP_ACTIVE ? e->event.time : 0;
	if (e->phase == STEP_ACTIVE && e->postponed > t->postponed) {
		session__warn_of(
			s, session__user(s, e->event.pid),
			"--schedule: active steps of process %u begin %llu steps later than they should: attaching took longer than the warmup",
			e->event.pid, e->postponed);
		t->postponed = e->postponed;
	}
}

/* A process that has ended needs no probes, and its last active phase ended with it. */
static void forget_ended(struct torch_schedule *t, u64 now)
{
	u32 left = 0;

	for (u32 i = 0; i < t->n; i++) {
		if (session__has_ended(t->processes[i].pid))
			active__add(&t->active, t->processes[i].active_since, now);
		else
			t->processes[left++] = t->processes[i];
	}
	t->n = left;
}

void torch_schedule__tick(struct session *s, struct torch_schedule *t, u64 now)
{
	const struct step_schedule *schedule = session__schedule(s);
	bool needed = !t->has_begun && step_schedule__phase(schedule, 0) != STEP_IDLE, ended = true;
	u64 oldest, open_since = ~0ull;
	bool is_late;

	if (!t->is_started) {
		t->is_started = true;
		active__start(s, &t->active, now);
		torch_schedule__set_suspended(s, !needed);
	}
	/* phases of which no record is there yet begin later than this */
	oldest = active__tick(s, &t->active, now, &is_late);
	t->has_begun |= t->n != 0;
	for (u32 i = 0; i < t->n; i++)
		t->has_done |= t->processes[i].phase == STEP_DONE;
	forget_ended(t, now);
	for (u32 i = 0; i < t->n; i++) {
		needed |= t->processes[i].phase == STEP_WARMUP || t->processes[i].phase == STEP_ACTIVE;
		ended &= t->processes[i].phase == STEP_DONE;
		if (t->processes[i].active_since && t->processes[i].active_since < open_since)
			open_since = t->processes[i].active_since;
	}
	oldest = open_since < oldest ? open_since : oldest;
	/* a record that was not read yet may be that of a phase which needs the probes */
	if (needed || !is_late)
		session__set_suspended(s, !needed);
	active__write_pauses(s, &t->active, needed || is_late ? oldest : ~0ull, open_since);
	/* a process whose first step is active has reported nothing before this step ends */
	if (needed && step_schedule__phase(schedule, 0) != STEP_ACTIVE)
		active__write_open_pause(s, &t->active, oldest);
	if (ended && t->has_done)
		session__end_schedule(s);
}

void torch_schedule__finish(struct session *s, struct torch_schedule *t)
{
	u64 now = session__now(s);

	for (u32 i = 0; i < t->n; i++) {
		active__add(&t->active, t->processes[i].active_since, now);
		t->processes[i].active_since = 0;
	}
	active__write_pauses(s, &t->active, ~0ull, ~0ull);
}

void torch_schedule__free(struct torch_schedule *t)
{
	free(t->processes);
	active__free(&t->active);
}
