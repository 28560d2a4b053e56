// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads one side: the time of threads by cause, their CPU time by function, findings. */
#include <errno.h>
#include <stdio.h>

#include "diff/diff_functions.h"
#include "diff/role.h"
#include "util/path.h"

struct threads {
	struct diff *d;
	u32 side;
	struct map roles; /* struct thread_key -> struct diff_role */
};

const struct diff_role *diff_role__of(struct diff *d, u32 side, struct map *roles, struct thread_key thread)
{
	struct diff_role *role = map__get(roles, &thread);
	char text[ROLE_LEN];
	int err = 0;

	if (!role)
		return NULL;
	if (role->process)
		return role;
	role->process = diff__text(d, role__process(d->q[side]->names, thread.pid, text, sizeof(text)), &err);
	role->thread = diff__text(d, role__thread(d->q[side]->names, thread.pid, thread.tid, text, sizeof(text)), &err);
	return err ? NULL : role;
}

/* Are findings of this kind about a process, and not about one function? */
static bool is_of_process(enum finding_kind kind)
{
	return kind == FINDING_GIL || kind == FINDING_COMPUTE || kind == FINDING_CPU;
}

/*
 * Replaces FINDING_QUOTA and FINDING_AFFINITY by FINDING_CPU: which of the three it is follows from shares of a
 * process's time, which in two runs may lie on both sides of a limit.
 */
static enum finding_kind compared_kind(enum finding_kind kind)
{
	return kind == FINDING_QUOTA || kind == FINDING_AFFINITY ? FINDING_CPU : kind;
}

static int add_bins(struct diff *d, u32 side, const struct diff_key *key, const float *bins)
{
	int err = 0;
	struct diff_measure *m = diff__measure(d, key, side, &err);

	for (u32 i = 0; m && i < NOISE_BINS; i++)
		m->ns.bins[i] += bins[i];
	return err;
}

static int add_to_process(struct diff *d, u32 side, u32 process, const float *bins, bool is_running)
{
	struct diff_process *p = map__get(&d->processes, &process);

	for (u32 i = 0; p && i < NOISE_BINS; i++) {
		p->ns[side] += bins[i];
		p->run_ns[side] += is_running ? bins[i] : 0;
	}
	return p ? 0 : -ENOMEM;
}

static int add_cell(struct threads *t, struct function_sums *functions, const struct profile_key *key,
		    const struct profile_cell *cell)
{
	struct diff *d = t->d;
	const struct stacks *stacks = findings__input(d->findings[t->side])->stacks;
	const struct diff_role *role = diff_role__of(d, t->side, &t->roles, key->thread);
	enum finding_kind kind = compared_kind(cell->kind);
	struct diff_key cause = { .section = DIFF_CAUSES, .kind = kind };
	struct diff_key finding = { .section = DIFF_FINDINGS, .kind = kind };
	float bins[NOISE_BINS];
	char name[STACK_LABEL];
	int err;

	if (!role)
		return -ENOMEM;
	for (u32 i = 0; i < NOISE_BINS; i++)
		bins[i] = (float)profile_cell__in_part(cell, i);
	cause.process = finding.process = role->process;
	cause.thread = role->thread;
	err = add_to_process(d, t->side, role->process, bins, cell->kind == FINDING_COMPUTE);
	if (!err)
		err = add_bins(d, t->side, &cause, bins);
	if (!err && cell->code && !is_of_process(kind))
		finding.name = diff__text(d, stacks__function(stacks, cell->code, name, sizeof(name)), &err);
	if (!err)
		err = add_bins(d, t->side, &finding, bins);
	if (!err && cell->kind == FINDING_COMPUTE)
		err = function_sums__add_run(functions, role, bins);
	return err;
}

/* The name of the function, as stacks__function() returns it. */
static u32 name_of(struct diff *d, const struct finding *f, int *err)
{
	char text[STACK_LABEL];

	if (!*f->code.function || is_of_process(compared_kind(f->kind)))
		return 0;
	snprintf(text, sizeof(text), *f->code.file ? "%s (%s)" : "%s", f->code.function, path__file_name(f->code.file));
	return diff__text(d, text, err);
}

/*
 * Spreads the time of a finding evenly over the bins. For findings that no cell has, such as garbage collections, of
 * which only the total time and the number are known; the number gives the variance.
 */
static void spread(struct diff_measure *m, const struct finding *f)
{
	for (u32 i = 0; i < NOISE_BINS; i++)
		m->ns.bins[i] = (float)((double)f->lost_ns / NOISE_BINS);
	m->ns.counting = (double)f->lost_ns * (double)f->lost_ns / (double)(f->times ? f->times : 1);
}

static int add_findings(struct threads *t)
{
	struct diff *d = t->d;
	const struct finding *f;
	int err = 0;

	for (u32 i = 0; !err && (f = findings__ranked(d->findings[t->side], i)) != NULL; i++) {
		struct diff_key key = { .section = DIFF_FINDINGS, .kind = compared_kind(f->kind) };
		struct thread_key thread = { f->pid, f->pid };
		const struct diff_role *role = diff_role__of(d, t->side, &t->roles, thread);
		struct diff_measure *m;

		/* calls are compared by function */
		if (f->is_notice || f->kind == FINDING_CALLS)
			continue;
		if (!role)
			return -ENOMEM;
		key.process = role->process;
		key.name = name_of(d, f, &err);
		m = err ? NULL : diff__measure(d, &key, t->side, &err);
		if (!m || m->rank)
			continue;
		m->rank = i + 1;
		if (noise_sum__total(&m->ns) <= 0)
			spread(m, f);
	}
	return err;
}

static int add_cells(struct threads *t, struct function_sums *functions)
{
	const struct profile *p = findings__input(t->d->findings[t->side])->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->cells.n; i++) {
		const struct profile_cell *cell = profile__cell(p, i);

		if (cell->n_parts && cell->kind != FINDING_NONE)
			err = add_cell(t, functions, profile__key(p, i), cell);
	}
	return err;
}

int diff_threads__read(struct diff *d, u32 side)
{
	struct threads t = { .d = d, .side = side };
	struct function_sums functions;
	int err;

	map__init(&t.roles, sizeof(struct thread_key), sizeof(struct diff_role));
	function_sums__init(&functions, d, side, &t.roles);
	err = findings__read(&d->findings[side], d->q[side], NOISE_BINS);
	if (!err)
		err = add_cells(&t, &functions);
	if (!err)
		err = add_findings(&t);
	if (!err)
		err = function_sums__finish(&functions, findings__input(d->findings[side])->stacks);
	function_sums__free(&functions);
	map__free(&t.roles);
	return err;
}
