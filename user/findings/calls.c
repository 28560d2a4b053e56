// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls of CUDA and NCCL: what they took in all, which failed, and which had not returned at the end. */
#include <errno.h>
#include <stdio.h>

#include "findings/about.h"
#include "model/cuda_calls.h"
#include "model/nccl_calls.h"

/* What threads wait for in these calls has a finding of its own, which says more. */
#define CALLS_WEIGHT 0.4
#define CALLS_PART   20

static struct finding *add(struct findings *out, enum finding_kind kind, u32 pid, u32 tid, const char *report)
{
	struct finding *f = findings__add(out, kind);

	if (!f)
		return NULL;
	f->pid = pid;
	f->tid = tid;
	f->processes = 1;
	snprintf(f->report, sizeof(f->report), "%s", report);
	f->calls = meaning__of_report(report);
	return f;
}

/* What one process spent in calls */
struct process_sum {
	u64 ns;
};

/* Adds a finding on all calls of a library, of which `function` took `top_ns`. */
static struct finding *add_all(const struct finding_input *in, struct findings *out, const char *report, u32 pid,
			       u64 calls, u64 ns, const char *function, u64 top_ns)
{
	/* among all findings, quick calls explain nothing */
	bool is_little = in->profile && ns < query__duration(in->q) / CALLS_PART;
	struct finding *f = calls && !is_little ? add(out, FINDING_CALLS, pid, 0, report) : NULL;

	if (!f)
		return NULL;
	f->lost_ns = ns;
	f->times = calls;
	f->weight = CALLS_WEIGHT * (double)ns;
	f->call_ns = top_ns;
	snprintf(f->call, sizeof(f->call), "%s", function);
	return f;
}

static struct finding *add_errors(struct findings *out, const char *report, u32 pid, u32 tid, u64 times,
				  const char *function)
{
	struct finding *f = add(out, FINDING_ERRORS, pid, tid, report);

	if (!f)
		return NULL;
	f->is_notice = true;
	f->times = times;
	snprintf(f->call, sizeof(f->call), "%s", function);
	return f;
}

static struct finding *add_stuck(const struct finding_input *in, struct findings *out, const char *report, u32 pid,
				 u32 tid, u64 times, u64 longest, const char *function)
{
	struct finding *f = add(out, FINDING_STUCK, pid, tid, report);

	if (!f)
		return NULL;
	f->threads = 1;
	f->times = times;
	f->lost_ns = longest;
	f->wall_ns = query__duration(in->q);
	f->weight = (double)longest;
	snprintf(f->call, sizeof(f->call), "%s", function);
	return f;
}

/* The function with most time, and the process with most time in calls; counts processes. */
static u32 largest_function(const struct cuda_calls *c, u64 *ns)
{
	u32 best = 0;

	*ns = 0;
	for (u32 i = 0; i < c->by_name.n; i++) {
		const struct cuda_group *g = map__value(&c->by_name, i);

		if (g->time.total < *ns)
			continue;
		*ns = g->time.total;
		best = *(const u32 *)map__key(&c->by_name, i);
	}
	return best;
}

static int largest_process(const struct cuda_calls *c, u32 *pid, u32 *processes)
{
	struct map sums;
	u64 most = 0;
	int err = 0;

	map__init(&sums, sizeof(u32), sizeof(struct process_sum));
	for (u32 i = 0; !err && i < c->by_thread.n; i++) {
		const struct cuda_call_key *k = map__key(&c->by_thread, i);
		const struct cuda_group *g = map__value(&c->by_thread, i);
		struct process_sum *s = map__get(&sums, &k->pid);

		if (!s) {
			err = -ENOMEM;
			break;
		}
		s->ns += g->time.total - g->inner_ns;
		if (s->ns >= most) {
			most = s->ns;
			*pid = k->pid;
		}
	}
	*processes = sums.n;
	map__free(&sums);
	return err;
}

int findings__find_cuda(const struct finding_input *in, struct findings *out)
{
	const struct cuda_calls *c = in->cuda;
	const struct cuda_return_key *worst;
	const char *name = NULL;
	struct finding *f;
	u32 pid = 0, processes = 0, function;
	u64 ns, errors;
	int err;

	if (!c || !c->calls)
		return 0;
	err = largest_process(c, &pid, &processes);
	if (err)
		return err;
	function = largest_function(c, &ns);
	f = add_all(in, out, "cuda-api", pid, c->calls - c->untimed, c->total, cuda_calls__function_name(c, function),
		    ns);
	if (f)
		f->processes = processes;
	worst = cuda_calls__worst_error(c, &errors);
	f = worst ? add_errors(out, "cuda-api", worst->call.pid, worst->call.tid, errors,
			       cuda_calls__function_name(c, worst->call.function)) :
		    NULL;
	if (f)
		name = cuda_calls__error_name(f->call, worst->ret);
	if (f && name)
		snprintf(f->object, sizeof(f->object), "%s", name);
	else if (f)
		snprintf(f->object, sizeof(f->object), "error %lld", worst->ret);
	if (c->open)
		add_stuck(in, out, "cuda-api", c->stuck.pid, c->stuck.tid, c->open, c->longest_open,
			  cuda_calls__function_name(c, c->stuck.function));
	return 0;
}

static u32 longest_function(const struct nccl_calls *c, u64 *ns)
{
	u32 longest = 0;

	*ns = 0;
	for (u32 i = 0; i < c->functions.n; i++) {
		const struct nccl_function *f = map__value(&c->functions, i);

		if (f->time.total < *ns || !f->time.count)
			continue;
		*ns = f->time.total;
		longest = *(const u32 *)map__key(&c->functions, i);
	}
	return longest;
}

static void add_nccl_failures(const struct nccl_calls *c, struct findings *out)
{
	const struct nccl_failure_key *k = NULL;
	const char *result;
	struct finding *f;
	u64 n, most = 0;

	for (u32 i = 0; i < c->failures.n; i++) {
		n = *(const u64 *)map__value(&c->failures, i);
		if (n <= most)
			continue;
		most = n;
		k = map__key(&c->failures, i);
	}
	f = k ? add_errors(out, "nccl-api", k->pid, k->tid, c->errors, nccl_calls__function_name(c, k->function)) :
		NULL;
	if (!f)
		return;
	result = nccl_calls__result_name(k->ret);
	if (result)
		snprintf(f->object, sizeof(f->object), "%s", result);
	else
		snprintf(f->object, sizeof(f->object), "error %d", k->ret);
}

static void add_nccl_stuck(const struct finding_input *in, struct findings *out)
{
	const struct nccl_calls *c = in->nccl;
	const struct nccl_open *longest = c->open;
	struct finding *f;

	if (!c->n_open)
		return;
	for (const struct nccl_open *o = c->open; o < c->open + c->n_open; o++)
		longest = o->ns > longest->ns ? o : longest;
	f = add_stuck(in, out, "nccl-api", longest->pid, longest->tid, c->n_open, longest->ns,
		      nccl_calls__function_name(c, longest->function));
	if (f && longest->size)
		snprintf(f->object, sizeof(f->object), "rank %d of %d", longest->rank, longest->size);
}

/* Returns the process whose communicators have most time in calls. */
static u32 nccl_process(const struct nccl_calls *c, u32 *processes)
{
	u32 pid = 0, k;
	u64 most = 0;

	*processes = 0;
	for (u32 i = 0; i < c->comms.n; i++) {
		const struct nccl_handle *key = map__key(&c->comms, i);
		const struct nccl_handles *h = map__value(&c->comms, i);
		u64 ns = 0;

		for (k = 0; k < i && ((const struct nccl_handle *)map__key(&c->comms, k))->pid != key->pid; k++)
			;
		*processes += k == i;
		for (k = 0; k < h->n; k++)
			ns += h->list[k].ns;
		if (ns >= most) {
			most = ns;
			pid = key->pid;
		}
	}
	return pid;
}

int findings__find_nccl(const struct finding_input *in, struct findings *out)
{
	const struct nccl_calls *c = in->nccl;
	u32 function, processes, pid;
	struct finding *f;
	u64 ns;

	if (!c || !c->calls)
		return 0;
	function = longest_function(c, &ns);
	pid = nccl_process(c, &processes);
	f = add_all(in, out, "nccl-api", pid, c->calls, c->total, nccl_calls__function_name(c, function), ns);
	if (f)
		f->processes = processes;
	add_nccl_failures(c, out);
	add_nccl_stuck(in, out);
	return 0;
}

FINDINGS(cuda_calls) = { .name = "cuda-calls", .find = findings__find_cuda };
FINDINGS(nccl_calls) = { .name = "nccl-calls", .find = findings__find_nccl };
