// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings/about.h"
#include "findings/classify.h"
#include "findings/group.h"
#include "findings/line_time.h"
#include "findings/memory_limit.h"
#include "findings/merge.h"
#include "findings/quotes.h"
#include "findings/rank_time.h"
#include "findings/ranges.h"
#include "findings/starts.h"
#include "findings/thread_pool.h"
#include "model/cuda_calls.h"
#include "model/gpu_gaps.h"
#include "model/job.h"
#include "model/nccl_calls.h"
#include "model/net_peers.h"
#include "model/torch_steps.h"
#include "util/array.h"
#include "util/compare.h"

REGISTRY(finding_module, sonde_findings);

struct findings {
	u32 users; /* calls of findings__free that are to come */
	struct activity *activity;
	struct stacks *stacks;
	struct profile *profile;
	struct lock_blame *locks;
	struct map memory_limits;
	struct gpu_busy gpu;
	struct gpu_gaps gaps;
	struct cuda_calls cuda;
	struct nccl_calls nccl;
	struct net_peers net;
	struct torch_steps *torch;
	struct rank_time ranks;
	struct finding_input input; /* points to the above */
	bool is_colours; /* there are no findings: it is for the colours of cells */
	struct finding *list; /* the ranked ones first */
	u32 n, n_ranked;
	u64 whole; /* length of the selected time, ns */
	u64 duration; /* the part of it in which the scheduler was measured (record --cost-limit), ns */
	bool failed; /* there was no memory for a finding */
};

/* A finding takes 5 KiB, so at this number findings are merged, and those with the least weight dropped. */
#define BATCH_MAX	   4096
#define RANKED_MAX	   500
#define RANKED_NOTICES_MAX 32 /* notices that are kept beyond RANKED_MAX */

static int rank(struct findings *f);

struct finding *findings__add(struct findings *out, enum finding_kind kind)
{
	if ((out->n >= BATCH_MAX && rank(out)) || !array__push(out->list, out->n, (struct finding){ .kind = kind })) {
		out->failed = true;
		return NULL;
	}
	return &out->list[out->n - 1];
}

void findings__free(struct findings *f)
{
	if (!f || --f->users)
		return;
	profile__free(f->profile);
	lock_blame__free(f->locks);
	map__free(&f->memory_limits);
	gpu_gaps__free(&f->gaps);
	gpu_busy__free(&f->gpu);
	cuda_calls__free(&f->cuda);
	nccl_calls__free(&f->nccl);
	net_peers__free(&f->net);
	torch_steps__free(f->torch);
	rank_time__free(&f->ranks);
	stacks__free(f->stacks);
	activity__free(f->activity);
	free(f->list);
	free(f);
}

const struct finding *findings__ranked(const struct findings *f, u32 i)
{
	return f && i < f->n ? &f->list[i] : NULL;
}

struct activity *findings__activity(const struct findings *f)
{
	return f->activity;
}

const struct finding_input *findings__input(const struct findings *f)
{
	return &f->input;
}

enum finding_colour findings__colour(const struct profile_cell *cell)
{
	/* the profile counts the time after a wait in which the thread was runnable with that wait */
	return finding_kind__colour(!cell || cell->is_delay ? FINDING_CPU : cell->kind);
}

u64 findings__left_out(const struct findings *f)
{
	return f && f->locks ? lock_blame__left_out(f->locks) : 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct findings *f = arg;
	int err = profile__add(f->profile, i);

	if (!err && !f->is_colours)
		err = rank_time__add(&f->ranks, i);
	if (!err && !f->is_colours && lock_blame__needs_activity(f->locks))
		err = lock_blame__interval(f->locks, i);
	return err;
}

COMPARE_BY(by_weight, struct finding, DESCENDING(weight), ASCENDING(pid))

/*
 * Lowers the weight of short times: a process that was runnable for 40 ms explains nothing about a job of two seconds.
 */
#define LITTLE_NS     100000000ull
#define LITTLE_PART   20
#define LITTLE_FACTOR 0.01

double findings__short_factor(u64 ns, u64 measured)
{
	return ns < LITTLE_NS && ns < measured / LITTLE_PART ? LITTLE_FACTOR : 1;
}

static void weigh_short(struct findings *f)
{
	for (u32 i = f->n_ranked; i < f->n; i++) {
		struct finding *one = &f->list[i];

		one->weight *= findings__short_factor(one->has_device ? one->wall_ns : one->lost_ns, f->duration);
	}
}

static bool is_library_wait(const struct finding *f)
{
	return (f->kind == FINDING_GPU_WAIT || f->kind == FINDING_NCCL || f->kind == FINDING_LIBRARY) && f->calls &&
	       f->calls->library;
}

/* Is the wait in calls of the library that f is about? And is f about its process, or about several? */
static bool is_same_library(const struct finding *wait, const struct finding *f)
{
	return f->calls && !strcmp(wait->calls->library, f->calls->library) &&
	       (wait->pid == f->pid || f->processes > 1);
}

/* Makes times that were measured in slices comparable with those that were recorded all the time. */
static double whole_part(const struct findings *f, const struct finding *one)
{
	return one->is_measured_part && f->duration ? (double)f->whole / (double)f->duration : 1;
}

static double whole_ns(const struct findings *f, const struct finding *one)
{
	return (double)one->lost_ns * whole_part(f, one);
}

static void weigh_measured_parts(struct findings *f)
{
	for (u32 i = f->n_ranked; i < f->n; i++)
		f->list[i].weight *= whole_part(f, &f->list[i]);
}

static bool is_slow_rank_of(const struct findings *all, const struct finding *slow, const struct finding *wait)
{
	return slow->kind == FINDING_STRAGGLER && !job__compare(all->input.q->names, slow->pid, wait->pid);
}

/*
 * Does f state a time of which other findings explain at least half? Then it is dropped: the time in all calls of a
 * library, if threads mostly waited in these calls; a wait in calls of a library, if it is mostly one call that has
 * not returned, or small copies; what a process computed, if it was mostly in calls of CUDA; and the waits for a slow
 * rank.
 */
static bool is_repeated(const struct findings *all, u32 n, const struct finding *f)
{
	bool is_wait = is_library_wait(f);
	double ns = 0;

	for (u32 i = 0; i < n; i++) {
		const struct finding *other = &all->list[i];

		if (f->kind == FINDING_CALLS && is_library_wait(other) && is_same_library(other, f))
			ns += whole_ns(all, other);
		else if (is_wait && other->kind == FINDING_STUCK && other->pid == f->pid &&
			 !strcmp(other->call, f->call))
			ns += whole_ns(all, other);
		else if (is_wait && other->kind == FINDING_COPIES && other->pid == f->pid && f->calls->is_copy)
			ns += whole_ns(all, other);
		else if (f->kind == FINDING_COMPUTE && other->is_on_cpu && other->pid == f->pid &&
			 other->kind != FINDING_LAUNCHES)
			ns += whole_ns(all, other);
		else if (f->kind == FINDING_RANKS && is_slow_rank_of(all, other, f))
			ns += whole_ns(all, other);
	}
	return ns > 0 && 2 * ns >= whole_ns(all, f);
}

/*
 * Drops repeated findings, and those beyond RANKED_MAX. Notices have no weight and so come last: some of them are kept
 * beyond RANKED_MAX. Returns how many findings are left.
 */
static u32 drop_repeated(struct findings *f, u32 all)
{
	struct finding *list = f->list;
	bool drops[RANKED_MAX] = { false };
	u32 kept = 0, notices = 0, n = all < RANKED_MAX ? all : RANKED_MAX;

	for (u32 i = 0; i < n; i++)
		drops[i] = is_repeated(f, n, &list[i]);
	for (u32 i = 0; i < n; i++)
		if (!drops[i])
			list[kept++] = list[i];
	for (u32 i = n; i < all && notices < RANKED_NOTICES_MAX; i++)
		if (list[i].is_notice) {
			list[kept++] = list[i];
			notices++;
		}
	return kept;
}

/* Merges and sorts findings, and drops those with the least weight. 0 or -ENOMEM. */
static int rank(struct findings *f)
{
	u32 kept = f->n;
	int err;

	if (!f->n)
		return 0;
	weigh_short(f);
	weigh_measured_parts(f);
	qsort(f->list, f->n, sizeof(*f->list), by_weight);
	err = finding__merge(f->list, &kept, f->input.q ? f->input.q->names : NULL);
	qsort(f->list, kept, sizeof(*f->list), by_weight);
	f->n = f->n_ranked = drop_repeated(f, kept);
	return err;
}

static bool is_same_code(const struct finding_code *x, const struct finding_code *y)
{
	return *x->function && !strcmp(x->function, y->function) && !strcmp(x->file, y->file);
}

/* Did `wait` wait for the code that computes in `cause`, and long enough to precede it? */
static bool is_caused_by(const struct finding *wait, const struct finding *cause)
{
	bool is_work = cause->kind == FINDING_COMPUTE || cause->kind == FINDING_CPU;

	/* threads that wait for each other in the same function compete for a CPU, too: then `cause` stays first */
	return is_work && wait->counterpart.pid && !wait->is_background &&
	       is_same_code(&wait->counterpart.code, &cause->code) && !is_same_code(&wait->code, &cause->code) &&
	       (wait->counterpart.pid == cause->pid || cause->processes > 1) &&
	       2 * wait->weight * cause->processes >= cause->weight;
}

/*
 * Moves a wait before the finding about the thread that caused it: it costs more than the computing itself, and names
 * both threads.
 */
static void raise_waits(struct findings *f)
{
	for (u32 i = 1; i < f->n; i++)
		for (u32 k = 0; k < i; k++)
			if (is_caused_by(&f->list[i], &f->list[k])) {
				struct finding wait = f->list[i];

				memmove(&f->list[k + 1], &f->list[k], (i - k) * sizeof(wait));
				f->list[k] = wait;
				break;
			}
}

/* A GPU that is busy for at least a twentieth of its time is what its program is for. */
#define GPU_USED_PART 20

/* Calls of CUDA that take this part of their threads' time say more than that these threads computed. */
#define GPU_CALLS_PART 20

static bool is_used_gpu(const struct finding *f)
{
	if (f->is_on_cpu)
		return f->lost_ns >= f->wall_ns / GPU_CALLS_PART;
	return f->kind == FINDING_GPU_IDLE && f->wall_ns - f->lost_ns >= f->wall_ns / GPU_USED_PART;
}

/*
 * Moves findings about a used GPU and about what calls of CUDA do on a CPU before those about what their process
 * computed, and which results it awaited.
 */
static void raise_gpus(struct findings *f)
{
	for (u32 i = 1; i < f->n; i++)
		for (u32 k = 0; k < i && is_used_gpu(&f->list[i]); k++) {
			enum finding_kind kind = f->list[k].kind;
			struct finding gpu = f->list[i];

			if (f->list[k].pid != gpu.pid ||
			    !IS_ONE_OF(kind, FINDING_COMPUTE, FINDING_RESULT, FINDING_BACKWARD))
				continue;
			memmove(&f->list[k + 1], &f->list[k], (i - k) * sizeof(gpu));
			f->list[k] = gpu;
			break;
		}
}

/* Only so many findings are completed, as a summary prints no more than FINDINGS_MAX of those that cost time. */
#define COMPLETED_MAX 8

static int complete(struct findings *f)
{
	int err = 0;

	raise_waits(f);
	raise_gpus(f);
	for (u32 i = 0; !err && i < f->n && i < COMPLETED_MAX; i++)
		err = line_time__add(&f->input, &f->list[i]);
	for (u32 i = 0; !err && i < f->n && i < COMPLETED_MAX; i++)
		err = thread_pool__add(&f->input, &f->list[i]);
	return err;
}

/* Sets f->input.gaps and so on, also when it fails: what was not read is empty. */
static int read_subjects(struct findings *f, const struct query *q)
{
	int err = gpu_busy__read(&f->gpu, q, NULL, NULL);

	if (!err)
		err = gpu_gaps__read(&f->gaps, &f->gpu, 0);
	if (!err)
		err = cuda_calls__read(&f->cuda, q);
	if (!err)
		err = nccl_calls__read(&f->nccl, q);
	if (!err)
		err = net_peers__read(&f->net, q);
	if (!err && trace__has(q->trace, "torch_range"))
		err = torch_steps__new(&f->torch, q);
	f->input.cpus = activity__cpus(f->activity);
	f->input.gaps = &f->gaps;
	f->input.cuda = &f->cuda;
	f->input.nccl = &f->nccl;
	f->input.net = &f->net;
	f->input.torch = f->torch;
	return err;
}

/* Groups of other kinds need not be looked for. */
static void note_kinds(struct profile *p)
{
	MAP_EACH(const struct profile_cell *cell, &p->cells)
		p->kinds |= FINDING_BIT(cell->kind);
}

static int run_modules(struct findings *f)
{
	int err = classify__cells(&f->input);

	note_kinds(f->profile);
	REGISTRY_EACH(sonde_findings, m)
		if (!err && (!f->is_colours || (*m)->decides_colours))
			err = (*m)->find(&f->input, f);
	/* not earlier, so that the order of the modules does not matter */
	MAP_EACH(struct profile_cell *cell, &f->profile->cells)
		cell->kind = cell->decided ? cell->decided : cell->kind;
	note_kinds(f->profile);
	return err;
}

static u32 activity_flags(const struct findings *f)
{
	/* without scheduler events, only calls show what threads did */
	return ACTIVITY_DETAILS | ACTIVITY_HOLDERS | (f->profile->has_sched ? 0 : ACTIVITY_IN_CALLS) |
	       (f->is_colours ? 0 : ACTIVITY_CPUS);
}

/* Reads the activity, and classifies the cells of the profile. */
static int read_cells(struct findings *f, const struct query *q, u32 n_parts)
{
	int err;

	f->whole = query__duration(q);
	f->duration = query__measured(q);
	err = profile__new(&f->profile, q, n_parts);
	if (!err)
		err = activity__new(&f->activity, q, activity_flags(f));
	if (!err)
		err = stacks__load(&f->stacks, q->trace);
	if (!err)
		err = rank_time__init(&f->ranks, q, f->stacks);
	if (!err)
		err = lock_blame__new(&f->locks, q, f->stacks, f->activity);
	if (!err)
		err = memory_limits__read(&f->memory_limits, q);
	f->input = (struct finding_input){ .q = q,
					   .activity = f->activity,
					   .stacks = f->stacks,
					   .profile = f->profile,
					   .locks = f->locks,
					   .memory_limits = &f->memory_limits,
					   .files = activity__files(f->activity),
					   .ranks = &f->ranks };
	if (!err && !f->is_colours)
		err = read_subjects(f, q);
	if (!err)
		err = activity__read(f->activity, on_interval, f);
	if (!err)
		err = profile__finish(f->profile);
	if (!err)
		err = lock_blame__finish(f->locks);
	return err ? err : run_modules(f);
}

static int read_findings(struct findings *f, const struct query *q, u32 n_parts)
{
	int err = read_cells(f, q, n_parts);

	if (!err && f->failed)
		err = -ENOMEM;
	if (rank(f) && !err)
		err = -ENOMEM;
	if (!err)
		err = complete(f);
	if (!err)
		err = starts__add(&f->input, f->list, f->n);
	if (!err)
		err = ranges__add(f->list, f->n, &f->input, f->activity);
	if (!err)
		err = quotes__add(f->list, f->n, q->trace);
	for (u32 i = 0; i < f->n; i++)
		finding__write(&f->list[i], q);
	return err;
}

static struct findings *share(struct findings *f)
{
	f->users++;
	return f;
}

int findings__read(struct findings **out, const struct query *q, u32 n_parts)
{
	struct findings *f;
	int err;

	if (q->findings && *q->findings && (!n_parts || (*q->findings)->profile->n_parts == n_parts)) {
		*out = share(*q->findings);
		return 0;
	}
	f = *out = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->users = 1;
	err = read_findings(f, q, n_parts);
	if (!err && q->findings && !*q->findings)
		*q->findings = share(f);
	return err;
}

int findings__read_colours(struct findings **out, const struct query *q, u32 n_parts)
{
	struct findings *f = *out = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->users = 1;
	f->is_colours = true;
	return read_cells(f, q, n_parts);
}

/* Less than this part of the time is not worth a line of its own. */
#define FIRST_PART 20

int findings__first(struct finding *first, const struct query *q)
{
	struct findings *f;
	int err = findings__read(&f, q, 0);
	const struct finding *best = err ? NULL : findings__ranked(f, 0);

	*first = (struct finding){ 0 };
	if (best && best->weight >= (double)query__duration(q) / FIRST_PART)
		*first = *best;
	findings__free(f);
	return err;
}

int findings__add_about(const struct finding_input *in,
			int (*find)(const struct finding_input *in, struct findings *out), struct report_output *out)
{
	struct findings f = { .input = *in };
	int err = find(in, &f);

	if (!err)
		err = quotes__add(f.list, f.n, in->q->trace);
	for (u32 i = 0; !err && i < f.n; i++) {
		finding__write(&f.list[i], in->q);
		finding__report(&f.list[i], in->q, false, out);
	}
	free(f.list);
	return err || !f.failed ? err : -ENOMEM;
}
