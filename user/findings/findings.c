// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/about.h"
#include "findings/classify.h"
#include "findings/line_time.h"
#include "model/cuda_calls.h"
#include "model/gpu_gaps.h"
#include "model/nccl_calls.h"
#include "model/net_peers.h"
#include "model/torch_steps.h"
#include "util/array.h"
#include "util/map.h"

REGISTRY(finding_module, sonde_findings);

struct findings {
	struct activity *activity;
	struct stacks *stacks;
	struct profile *profile;
	struct lock_blame *locks;
	struct osrt_files *files;
	struct gpu_busy gpu;
	struct gpu_gaps gaps;
	struct cuda_calls cuda;
	struct nccl_calls nccl;
	struct net_peers net;
	struct torch_steps *torch;
	struct finding_input input; /* points to the above */
	const struct findings_listener *listener;
	struct finding *list; /* the ranked ones first */
	u32 n, n_ranked;
	u64 duration; /* of the selected time, ns */
	bool failed; /* there was no memory for a finding */
};

/* A finding takes 4 KiB, so this many are merged at a time, and those with the least weight dropped. */
#define BATCH_MAX	   4096
#define RANKED_MAX	   500
#define RANKED_NOTICES_MAX 32 /* of failures, beyond these */

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
	if (!f)
		return;
	profile__free(f->profile);
	lock_blame__free(f->locks);
	osrt_files__free(f->files);
	gpu_gaps__free(&f->gaps);
	gpu_busy__free(&f->gpu);
	cuda_calls__free(&f->cuda);
	nccl_calls__free(&f->nccl);
	net_peers__free(&f->net);
	torch_steps__free(f->torch);
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

u64 findings__left_out(const struct findings *f)
{
	return f && f->locks ? lock_blame__left_out(f->locks) : 0;
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	struct findings *f = arg;
	int err = profile__add(f->profile, i);

	if (!err && lock_blame__needs_activity(f->locks))
		err = lock_blame__interval(f->locks, i);
	return err || !f->listener ? err : f->listener->interval(i, f->listener->arg);
}

/* Identifies findings to merge: processes with equal code and cause, such as a server's workers. Zero the padding. */
struct code_key {
	u32 kind;
	char function[sizeof(((struct finding_code *)0)->function)];
	char file[sizeof(((struct finding_code *)0)->file)];
	char by[sizeof(((struct finding_code *)0)->function)];
};

/* Retains the call with more time. */
static void merge_calls(struct finding *into, const struct finding *f)
{
	bool same = !strcmp(into->call, f->call);

	if (!same && f->call_ns > into->call_ns)
		memcpy(into->call, f->call, sizeof(into->call));
	else if (!same)
		return;
	into->call_ns = f->call_ns + (same ? into->call_ns : 0);
	into->call_times = f->call_times + (same ? into->call_times : 0);
}

/* into->lost_ns is already the sum of both. Fields in which the processes differ are cleared. */
static void merge_counterparts(struct finding *into, const struct finding *f)
{
	struct finding_counterpart *by = &into->by;
	double part = into->lost_ns ? (double)f->lost_ns / (double)into->lost_ns : 0;
	bool own = by->pid == into->pid && f->by.pid == f->pid;

	if ((!own && by->pid != f->by.pid && !*by->code.function) || strcmp(by->code.native, f->by.code.native)) {
		*by = (struct finding_counterpart){ 0 };
		return;
	}
	if (!own && by->pid != f->by.pid)
		by->pid = 0;
	if (!by->pid || by->tid != f->by.tid)
		by->tid = 0;
	if (by->code.line != f->by.code.line)
		by->code.line = 0;
	if (strcmp(by->activity, f->by.activity))
		*by->activity = '\0';
	by->percent += (f->by.percent - by->percent) * part;
	by->cpus_percent += (f->by.cpus_percent - by->cpus_percent) * part;
}

/* Of details that differ in their figures, what precedes the figures is retained: "many small round trips: 42%". */
static void merge_details(struct finding *into, const struct finding *f)
{
	size_t len = strcspn(f->detail, ":");

	if (!strcmp(into->detail, f->detail))
		return;
	if (strcspn(into->detail, ":") != len || memcmp(into->detail, f->detail, len))
		len = 0;
	/* digits are figures */
	if (strcspn(f->detail, "0123456789") < len)
		len = 0;
	into->detail[len] = '\0';
}

static void merge(struct finding *into, const struct finding *f)
{
	into->processes += f->processes;
	into->threads += f->threads;
	into->lost_ns += f->lost_ns;
	into->wall_ns += f->wall_ns;
	into->times += f->times;
	into->delay_ns += f->delay_ns;
	into->ran_ns += f->ran_ns;
	into->in_code_ns += f->in_code_ns;
	merge_calls(into, f);
	/* as for threads of one process, waits for something to do count once */
	into->weight = !into->is_background || !f->is_background ? into->weight + f->weight :
		       into->weight > f->weight			 ? into->weight :
								   f->weight;
	into->is_background = into->is_background && f->is_background;
	into->tid = 0;
	if (f->confidence > into->confidence)
		into->confidence = f->confidence;
	merge_counterparts(into, f);
	merge_details(into, f);
	if (strcmp(into->advice, f->advice))
		*into->advice = '\0';
	if (strcmp(into->report, f->report))
		*into->report = '\0';
	if (strcmp(into->object, f->object))
		*into->object = '\0';
}

static int by_weight(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * Lowers the weight of short times: a process that was runnable for 40 ms explains nothing about a job of two seconds.
 */
#define LITTLE_NS     100000000ull
#define LITTLE_PART   20
#define LITTLE_FACTOR 0.01

static void weigh_small(struct findings *f)
{
	for (u32 i = f->n_ranked; i < f->n; i++) {
		const struct finding *one = &f->list[i];
		u64 ns = one->has_device ? one->wall_ns : one->lost_ns;

		if (ns < LITTLE_NS && ns < f->duration / LITTLE_PART)
			f->list[i].weight *= LITTLE_FACTOR;
	}
}

/* Returns the finding among the first n that f is to be merged with; NULL: none. */
static struct finding *same_as(struct finding *list, struct map *codes, const struct finding *f, u32 kept, bool *failed)
{
	/* of two workers one may wait for a CPU for longer than it has one */
	struct code_key key = { .kind = f->kind == FINDING_CPU && f->ran_ns ? FINDING_COMPUTE : f->kind };
	u32 *number;

	if (!*f->code.function)
		return NULL;
	snprintf(key.function, sizeof(key.function), "%s", f->code.function);
	snprintf(key.file, sizeof(key.file), "%s", f->code.file);
	snprintf(key.by, sizeof(key.by), "%s", f->by.code.function);
	number = map__get(codes, &key);
	if (!number) {
		*failed = true;
		return NULL;
	}
	/* merging may have changed the counterpart of that finding */
	if (*number && !strcmp(list[*number - 1].by.code.function, f->by.code.function))
		return list[*number - 1].pid == f->pid ? NULL : &list[*number - 1];
	*number = kept + 1;
	return NULL;
}

/* Are both about calls of the same library, and these of one process? */
static bool is_same_library(const struct finding *a, const struct finding *b)
{
	return !strncmp(a->call, "nccl", 4) == !strncmp(b->call, "nccl", 4) && (a->pid == b->pid || b->processes > 1);
}

static bool is_library_wait(const struct finding *f)
{
	return f->kind == FINDING_GPU_WAIT || f->kind == FINDING_NCCL ||
	       (f->kind == FINDING_LIBRARY && !strncmp(f->call, "cu", 2));
}

/*
 * Of findings that state the same time, one is kept. The time in all calls of a library says less than what threads
 * waited for in them, if that is most of it; a wait that is mostly one call without an end, or small copies, less than
 * these.
 */
static bool is_repeated(const struct finding *list, u32 n, const struct finding *f)
{
	u64 ns = 0;

	for (u32 i = 0; i < n; i++) {
		const struct finding *other = &list[i];

		if (f->kind == FINDING_CALLS && is_library_wait(other) && is_same_library(other, f))
			ns += other->lost_ns;
		else if (is_library_wait(f) && other->kind == FINDING_STUCK && other->pid == f->pid &&
			 !strcmp(other->call, f->call))
			ns += other->lost_ns;
		else if (is_library_wait(f) && other->kind == FINDING_COPIES && other->pid == f->pid &&
			 strstr(f->call, "Memcpy"))
			ns += other->lost_ns;
	}
	return ns && 2 * ns >= f->lost_ns;
}

/* Also drops those beyond RANKED_MAX, but for notices, which have no weight. Returns how many are left. */
static u32 drop_repeated(struct finding *list, u32 all)
{
	bool drops[RANKED_MAX] = { false };
	u32 kept = 0, notices = 0, n = all < RANKED_MAX ? all : RANKED_MAX;

	for (u32 i = 0; i < n; i++)
		drops[i] = is_repeated(list, n, &list[i]);
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
	u32 kept = 0;
	struct map codes;
	bool failed = false;

	if (!f->n)
		return 0;
	weigh_small(f);
	qsort(f->list, f->n, sizeof(*f->list), by_weight);
	map__init(&codes, sizeof(struct code_key), sizeof(u32));
	for (u32 i = 0; i < f->n; i++) {
		struct finding *same = same_as(f->list, &codes, &f->list[i], kept, &failed);

		if (same)
			merge(same, &f->list[i]);
		else
			f->list[kept++] = f->list[i];
	}
	map__free(&codes);
	qsort(f->list, kept, sizeof(*f->list), by_weight);
	f->n = f->n_ranked = drop_repeated(f->list, kept);
	return failed ? -ENOMEM : 0;
}

static bool is_same_code(const struct finding_code *x, const struct finding_code *y)
{
	return *x->function && !strcmp(x->function, y->function) && !strcmp(x->file, y->file);
}

/* Is `wait` a wait for what `cause` states, and long enough to be said first? */
static bool is_caused_by(const struct finding *wait, const struct finding *cause)
{
	bool is_work = cause->kind == FINDING_COMPUTE || cause->kind == FINDING_CPU;

	/* threads that hold each other up in one function compete for a CPU, too */
	return is_work && wait->by.pid && !wait->is_background && is_same_code(&wait->by.code, &cause->code) &&
	       !is_same_code(&wait->code, &cause->code) && (wait->by.pid == cause->pid || cause->processes > 1) &&
	       2 * wait->weight * cause->processes >= cause->weight;
}

/* A thread that makes others wait costs more than what it does itself: the wait, which names both, precedes it. */
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

/* So many findings are printed in a summary: only these are completed. */
#define COMPLETED_MAX 8

static int complete(struct findings *f)
{
	int err = 0;

	raise_waits(f);
	for (u32 i = 0; !err && i < f->n && i < COMPLETED_MAX; i++)
		err = line_time__add(&f->input, &f->list[i]);
	return err;
}

/* Sets in->gaps and so on, also when it fails: what was not read is empty. */
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
	f->input.gaps = &f->gaps;
	f->input.cuda = &f->cuda;
	f->input.nccl = &f->nccl;
	f->input.net = &f->net;
	f->input.torch = f->torch;
	return err;
}

static int run_modules(struct findings *f)
{
	int err = classify__cells(&f->input);

	REGISTRY_EACH(sonde_findings, m)
		err = err ? err : (*m)->find(&f->input, f);
	return err;
}

int findings__read(struct findings **out, const struct query *q, const struct findings_listener *listener)
{
	struct findings *f = calloc(1, sizeof(*f));
	int err;

	*out = f;
	if (!f)
		return -ENOMEM;
	f->listener = listener;
	f->duration = query__duration(q);
	err = profile__new(&f->profile, q);
	/* without scheduler events, only calls show what threads did */
	if (!err)
		err = activity__new(&f->activity, q,
				    ACTIVITY_DETAILS | ACTIVITY_HOLDERS |
					    (f->profile->has_sched ? 0 : ACTIVITY_IN_CALLS));
	if (!err)
		err = stacks__load(&f->stacks, q->trace);
	if (!err)
		err = lock_blame__new(&f->locks, q, f->stacks, f->activity);
	if (!err)
		err = osrt_files__new(&f->files, q);
	f->input = (struct finding_input){ .q = q,
					   .activity = f->activity,
					   .stacks = f->stacks,
					   .profile = f->profile,
					   .locks = f->locks,
					   .files = f->files };
	if (!err)
		err = read_subjects(f, q);
	if (!err)
		err = activity__read(f->activity, on_interval, f);
	if (!err)
		err = profile__finish(f->profile);
	if (!err)
		err = lock_blame__finish(f->locks);
	if (!err)
		err = run_modules(f);
	if (!err && f->failed)
		err = -ENOMEM;
	if (rank(f) && !err)
		err = -ENOMEM;
	if (!err)
		err = complete(f);
	for (u32 i = 0; i < f->n; i++)
		finding__write(&f->list[i], q);
	return err;
}

int findings__add_about(const struct finding_input *in,
			int (*find)(const struct finding_input *in, struct findings *out), struct report_output *out)
{
	struct findings f = { .input = *in };
	int err = find(in, &f);

	for (u32 i = 0; !err && i < f.n; i++) {
		finding__write(&f.list[i], in->q);
		finding__report(&f.list[i], in->q, false, out);
	}
	free(f.list);
	return err || !f.failed ? err : -ENOMEM;
}
