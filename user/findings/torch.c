// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Loops of PyTorch: waits for the data loader, steps that took longer than the others, code that runs many small
 * operators, copies of tensors, and operators that fell back to the CPU.
 */
#include <stdio.h>
#include <string.h>

#include "findings/findings.h"
#include "model/torch_steps.h"
#include "output/text.h"
#include "util/saturate.h"

/* Of fewer steps the median says little. */
#define STEPS_MIN 4
/* A cause below this part of the loop's time explains nothing. */
#define SHARE_MIN 10
/* A twentieth: one call may cost a GPU more than its own time. */
#define FALLBACK_MIN 20
/* For longer operators the time between two of them does not matter. */
#define SMALL_NS 50000u

static struct finding *add(const struct torch_loop *l, enum finding_kind kind, u64 lost, struct findings *out)
{
	struct finding *f = findings__add(out, kind);

	if (!f)
		return NULL;
	f->pid = l->pid;
	f->tid = l->tid;
	f->processes = f->threads = 1;
	f->lost_ns = lost;
	f->wall_ns = l->total_ns > lost ? l->total_ns : lost;
	f->weight = (double)lost * finding_kind__weight(kind);
	snprintf(f->report, sizeof(f->report), "steps");
	return f;
}

static bool has_finding(const struct findings *list, enum finding_kind kind, u32 pid)
{
	const struct finding *f;

	for (u32 i = 0; (f = findings__ranked(list, i)) != NULL; i++)
		if (f->kind == kind && f->pid == pid)
			return true;
	return false;
}

/* Returns whether the loop waits for its data loader for a part of its time that matters. */
static bool add_loader(const struct torch_loop *l, struct findings *out)
{
	u64 lost = l->phase_total_ns[PHASE_DATA], longest = 0;
	bool own = strstr(l->loader, "SingleProcess");
	struct finding *f;

	if (lost < l->total_ns / SHARE_MIN)
		return false;
	/* a finding of this kind that was made from waits is better: it has the code that waited */
	f = has_finding(out, FINDING_LOADER, l->pid) ? NULL : add(l, FINDING_LOADER, lost, out);
	if (!f)
		return true;
	for (u32 i = 0; i < l->n; i++)
		longest = l->steps[i].phase_ns[PHASE_DATA] > longest ? l->steps[i].phase_ns[PHASE_DATA] : longest;
	f->times = l->n;
	snprintf(f->detail, sizeof(f->detail), "%s a step (median of %u), at longest %s%s",
		 TEXT_NS(l->phase_median_ns[PHASE_DATA]), l->n, TEXT_NS(longest),
		 own ? ";" CLAUSE "the thread that trains loads the data itself" : "");
	if (own)
		snprintf(f->advice, sizeof(f->advice),
			 "`DataLoader(num_workers=N)` loads in other processes meanwhile.");
	return true;
}

static void add_slow(const struct torch_steps *steps, const struct torch_loop *l, bool has_loader,
		     const struct query *q, struct findings *out)
{
	const struct torch_step *s = &l->steps[l->slowest];
	const struct torch_part *part;
	u64 lost = 0, slow = 0, more, part_more;
	enum torch_phase phase = torch_loop__slow_phase(l, &more);
	struct finding *f;

	for (u32 i = 0; i < l->n; i++) {
		u64 ns = l->steps[i].end - l->steps[i].start;

		if (!torch_loop__is_slow(l, i))
			continue;
		slow++;
		lost += ns - l->median_ns;
	}
	/* another finding already states that they wait for their data */
	if (l->n < STEPS_MIN || lost < l->total_ns / SHARE_MIN || (has_loader && phase == PHASE_DATA))
		return;
	f = add(l, FINDING_STEP, lost, out);
	if (!f)
		return;
	part = torch_loop__slow_part(l, &part_more);
	f->times = slow;
	snprintf(f->detail, sizeof(f->detail),
		 "%llu of %u steps took longer than 1.5 times the median of %s;" CLAUSE
		 "the longest, at %s s, took %s, %s more in %s",
		 slow, l->n, TEXT_NS(l->median_ns), TEXT_SECONDS(s->start, q->start, 3), TEXT_NS(s->end - s->start),
		 TEXT_NS(more), torch_phase__name(phase));
	if (part && phase != PHASE_DATA && part_more > more / 2)
		snprintf(f->detail + strlen(f->detail), sizeof(f->detail) - strlen(f->detail), ", %s in %s itself",
			 TEXT_NS(part_more), torch__name(steps->torch, part->name));
}

/* The time between operators contains costs of the probes, so there is no finding if these costs are not known. */
static void add_small(const struct torch_steps *steps, const struct torch_loop *l, struct findings *out)
{
	u64 in = 0, calls = 0, between = 0, distances = 0;
	struct finding *f;

	for (u32 i = 0; i < l->n; i++) {
		in += l->steps[i].operators_ns;
		calls += l->steps[i].operators;
		between += l->steps[i].between_ns;
		distances += l->steps[i].distances;
	}
	if (!torch__coverage(steps->torch)->is_corrected || !distances || between <= in ||
	    between < l->total_ns / SHARE_MIN || in / calls > SMALL_NS)
		return;
	f = add(l, FINDING_OVERHEAD, between, out);
	if (!f)
		return;
	f->times = calls;
	snprintf(f->detail, sizeof(f->detail),
		 "its forward pass calls %s operators a step, %s each, and %s pass between two of them",
		 TEXT_COUNT(calls / l->n), TEXT_NS(in / calls), TEXT_NS(between / distances));
	snprintf(f->advice, sizeof(f->advice),
		 "With larger batches, fused operators or `torch.compile` it calls fewer operators.");
}

/*
 * Copies between types and devices, and reads of values, for which a program waits until the GPU has computed them.
 * The share is computed without the probes' time on both sides: it is the copies' time without probes divided by the
 * steps' time without probes.
 */
static void add_copies(const struct torch_steps *steps, const struct torch_loop *l, struct findings *out)
{
	u64 ns = 0, calls = 0, total = l->total_ns > l->probes_ns ? l->total_ns - l->probes_ns : 0;
	u32 most = 0;
	struct finding *f;

	for (u32 i = 0; i < TORCH_COPIES; i++) {
		ns += l->copies[i].ns;
		calls += l->copies[i].calls;
		most = l->copies[i].ns > l->copies[most].ns ? i : most;
	}
	/* in a trace of any content, copies that were called may have taken no time */
	if (!l->copies[most].calls || ns < total / SHARE_MIN || calls < l->n)
		return;
	f = add(l, FINDING_TENSOR_COPIES, ns, out);
	if (!f)
		return;
	f->wall_ns = total > ns ? total : ns;
	f->times = calls;
	calls = l->copies[most].calls;
	snprintf(f->detail, sizeof(f->detail), "%s in %s, %llu call%s a step of %s",
		 l->copies[most].ns == ns ? "all" : "mostly", torch_copies__name(most), (calls + l->n / 2) / l->n,
		 text__s((calls + l->n / 2) / l->n), TEXT_NS(l->copies[most].ns / calls));
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		torch__coverage(steps->torch)->has_device ?
			"Reading a value or copying to the host waits for the GPU: do it less often, and copy with `non_blocking=True`." :
			"Convert tensors once, before the loop, or use one type everywhere: then no copies are needed.");
	snprintf(f->report, sizeof(f->report), "torch");
}

static void add_fallback(const struct torch_steps *steps, const struct torch_loop *l, struct findings *out)
{
	u64 ns = 0, calls = 0, total = l->total_ns > l->probes_ns ? l->total_ns - l->probes_ns : 0;
	const struct torch_fallback *most = NULL;
	struct finding *f;
	u32 name = 0;

	for (u32 i = 0; i < l->fallbacks.n; i++) {
		const struct torch_fallback *b = map__value(&l->fallbacks, i);

		ns = saturate__sum(ns, b->ns);
		calls += b->calls;
		if (most && b->ns <= most->ns)
			continue;
		most = b;
		name = *(const u32 *)map__key(&l->fallbacks, i);
	}
	if (!most || ns < total / FALLBACK_MIN)
		return;
	f = add(l, FINDING_FALLBACK, ns, out);
	if (!f)
		return;
	f->wall_ns = total > ns ? total : ns;
	f->times = calls;
	snprintf(f->detail, sizeof(f->detail), "%s in %s, %s call%s of %s", l->fallbacks.n == 1 ? "all" : "mostly",
		 torch__name(steps->torch, name), TEXT_COUNT(most->calls), text__s(most->calls),
		 TEXT_NS(most->ns / most->calls));
	snprintf(
		f->advice, sizeof(f->advice), "%s",
		"The tensors' device has no such operator, so they are copied to the CPU and back: use one that it has.");
	snprintf(f->report, sizeof(f->report), "torch");
}

static int find(const struct finding_input *in, struct findings *out)
{
	const struct torch_steps *s = in->torch;

	for (u32 i = 0; s && i < s->n; i++) {
		bool has_loader = add_loader(&s->loops[i], out);

		add_slow(s, &s->loops[i], has_loader, in->q, out);
		add_small(s, &s->loops[i], out);
		add_copies(s, &s->loops[i], out);
		add_fallback(s, &s->loops[i], out);
	}
	return 0;
}

FINDINGS(torch) = { .name = "torch", .find = find };
