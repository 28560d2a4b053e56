// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CPU time in calls of CUDA: threads that allocate and release a GPU's memory, or that launch one kernel after the
 * other. The scheduler's events show only that they run.
 */
#include "findings/gpu_calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "model/cuda_calls.h"
#include "model/gpu_gaps.h"
#include "output/table.h"
#include "output/text.h"
#include "util/array.h"

enum call_class { CALLS_OTHER, CALLS_WAIT, CALLS_MEMORY, CALLS_LAUNCH };

/* How the names of functions begin */
static const char *const memory[] = { "cudaMalloc", "cudaFree", "cudaHostAlloc", "cuMemAlloc",
				      "cuMemFree",  "cuMemMap", "cuMemUnmap",	 "cuMemCreate" };
static const char *const launches[] = { "cudaLaunchKernel", "cuLaunchKernel" };
static const char *const queues[] = { "cudaLaunch",    "cuLaunch",   "cudaGraphLaunch",
				      "cuGraphLaunch", "cudaMemset", "cuMemset" };

/* Calls that queue work and take this long on average, ns, wait until the queue has room, as others take some us. */
#define FULL_QUEUE_NS 200000u

static bool begins_with(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

/* calls: of this function by one thread */
static enum call_class class_of(const char *name, const struct cuda_group *calls)
{
	if (strstr(name, "Synchronize"))
		return CALLS_WAIT;
	if (begins_with(name, memory, ARRAY_LEN(memory)))
		return CALLS_MEMORY;
	if (begins_with(name, queues, ARRAY_LEN(queues)) && calls->time.mean >= FULL_QUEUE_NS)
		return CALLS_WAIT;
	return begins_with(name, launches, ARRAY_LEN(launches)) ? CALLS_LAUNCH : CALLS_OTHER;
}

/* A thread, or a function of a process if id is the function's number */
struct calls_key {
	u32 pid, id;
	enum call_class class;
};

struct calls_sum {
	u64 ns, times; /* of calls that are not within others */
	u64 wall, run; /* of the threads */
	u32 threads, tid;
};

struct calls {
	const struct finding_input *in;
	struct map threads, functions; /* struct calls_key -> struct calls_sum */
	struct map processes; /* the same, with id 0 */
};

u64 gpu_calls__launches(const struct finding_input *in, struct thread_key thread)
{
	u64 n = 0;

	/* for the colours of cells, calls are not read */
	if (!in->cuda)
		return 0;
	MAP_EACH_ENTRY(const struct cuda_group *g, const struct cuda_call_key *key, &in->cuda->by_thread) {
		if (key->pid == thread.pid && key->tid == thread.tid && !g->inner_ns &&
		    class_of(cuda_calls__function_name(in->cuda, key->function), g) == CALLS_LAUNCH)
			n += g->time.count;
	}
	return n;
}

static bool is_in_call(const struct stacks *stacks, u32 stack, const char *function)
{
	const struct stack_frame *f;

	for (; (f = stacks__frame(stacks, stack)) != NULL && f->kind != FRAME_PYTHON; stack = f->caller)
		if (!strncmp(f->name, function, strlen(function)))
			return true;
	return false;
}

double gpu_calls__fill_code(const struct finding_input *in, u32 pid, const char *function, struct finding_code *code)
{
	u64 most = 0, all = 0, *sum;
	u32 stack = 0;
	struct map lines;

	map__init(&lines, sizeof(u32), sizeof(u64));
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		u32 user;

		if (key->thread.pid != pid || !is_in_call(in->stacks, key->stack, function))
			continue;
		all += s->ns;
		user = stack_parts__of(in->stacks, key->stack).user;
		sum = user ? map__get(&lines, &user) : NULL;
		if (!sum)
			continue;
		*sum += s->ns;
		if (*sum > most) {
			most = *sum;
			stack = user;
		}
	}
	map__free(&lines);
	if (stack)
		finding_code__fill(code, in->stacks, stack);
	return table__percent(most, all);
}

static int add_sum(struct map *sums, u32 pid, u32 id, enum call_class class, const struct cuda_group *g)
{
	struct calls_key key = { pid, id, class };
	struct calls_sum *s = map__get(sums, &key);

	if (!s)
		return -ENOMEM;
	s->ns += g->time.total - g->inner_ns;
	s->times += g->time.count;
	return 0;
}

static int sum_calls(struct calls *c)
{
	const struct cuda_calls *cuda = c->in->cuda;
	int err = 0;

	MAP_EACH_ENTRY(const struct cuda_group *g, const struct cuda_call_key *key, &cuda->by_thread) {
		enum call_class class = class_of(cuda_calls__function_name(cuda, key->function), g);

		if (err || class == CALLS_OTHER || g->time.total <= g->inner_ns)
			continue;
		err = add_sum(&c->threads, key->pid, key->tid, class, g);
		if (!err)
			err = add_sum(&c->functions, key->pid, key->function, class, g);
	}
	return err;
}

/* Threads with less than a twentieth of their time in such calls do not count, but each launched kernel does. */
#define SHARE_MIN 20

static int sum_threads(struct calls *c)
{
	MAP_EACH_ENTRY(const struct calls_sum *s, const struct calls_key *key, &c->threads) {
		struct calls_key process = { key->pid, 0, key->class };
		struct thread_key thread = { key->pid, key->id };
		const struct profile_thread *t = map__find(&c->in->profile->threads, &thread);
		struct calls_sum *p;

		if (!t || (key->class != CALLS_LAUNCH && s->ns < t->wall / SHARE_MIN))
			continue;
		p = map__get(&c->processes, &process);
		if (!p)
			return -ENOMEM;
		p->ns += s->ns;
		p->times += s->times;
		p->wall += t->wall + t->unmeasured;
		p->run += t->run;
		p->threads++;
		p->tid = p->threads == 1 ? key->id : 0;
	}
	return 0;
}

static const struct calls_sum *largest_function(const struct calls *c, const struct calls_key *of, u32 except,
						u32 *function)
{
	const struct calls_sum *most = NULL;

	MAP_EACH_ENTRY(const struct calls_sum *s, const struct calls_key *key, &c->functions) {
		if (key->pid != of->pid || key->class != of->class || key->id == except || (most && s->ns <= most->ns))
			continue;
		most = s;
		*function = key->id;
	}
	return most;
}

static struct finding *add(const struct calls *c, const struct calls_key *key, const struct calls_sum *s,
			   enum finding_kind kind, struct findings *out)
{
	u32 function = 0;
	const struct calls_sum *most = largest_function(c, key, 0, &function);
	struct finding *f = most ? findings__add(out, kind) : NULL;

	if (!f)
		return NULL;
	f->pid = key->pid;
	f->tid = s->tid;
	f->processes = 1;
	f->threads = s->threads;
	f->lost_ns = s->ns;
	f->wall_ns = s->wall > s->ns ? s->wall : s->ns;
	f->times = s->times;
	f->is_on_cpu = true;
	f->confidence = FINDING_ATTRIBUTED;
	f->weight = (double)s->ns * finding_kind__weight(kind);
	f->call_ns = most->ns;
	f->call_times = most->times;
	f->calls = meaning__of_report("cuda-api");
	snprintf(f->call, sizeof(f->call), "%s", cuda_calls__function_name(c->in->cuda, function));
	snprintf(f->report, sizeof(f->report), "cuda-api");
	gpu_calls__fill_code(c->in, f->pid, f->call, &f->code);
	return f;
}

static int add_memory(const struct calls *c, const struct calls_key *key, const struct calls_sum *s,
		      struct findings *out)
{
	struct finding *f = add(c, key, s, FINDING_GPU_MEMORY, out);
	u32 function = 0, next = 0;
	const struct calls_sum *n;
	struct finding_code code = { 0 };
	char text[224], times[128];

	if (!f)
		return -ENOMEM;
	largest_function(c, key, 0, &function);
	n = largest_function(c, key, function, &next);
	if (n) {
		const char *name = cuda_calls__function_name(c->in->cuda, next);

		snprintf(times, sizeof(times), "%s times in %.60s, %s each", TEXT_COUNT(n->times), name,
			 TEXT_NS(n->ns / n->times));
		gpu_calls__fill_code(c->in, f->pid, name, &code);
		finding_code__write(&code, ", in ", times, text, sizeof(text));
		finding__add_detail(f, text);
	}
	snprintf(
		f->advice, sizeof(f->advice),
		"Memory that is kept can be used again without these calls; PyTorch keeps it unless `empty_cache()` is called.");
	return 0;
}

/* A program that launches a kernel at least that often, ns, and hardly does anything else is bound by launches. */
#define LAUNCH_EVERY_NS	    200000u
#define LAUNCHING_PERCENT   90
#define OTHER_CALLS_PERCENT 5
/* A GPU that is busy for this part of the time is what the program waits for. */
#define BUSY_PERCENT 80

static u64 ns_of_class(const struct calls *c, u32 pid, enum call_class class)
{
	struct calls_key key = { pid, 0, class };
	const struct calls_sum *s = map__find(&c->processes, &key);

	return s ? s->ns : 0;
}

static bool has_busy_gpu(const struct finding_input *in, u32 pid)
{
	const struct gpu_busy *b = in->gaps->busy;

	for (u32 i = 0; i < b->devices.n; i++)
		if (gpu_busy__key(b, i)->pid == pid &&
		    100 * gpu_busy__sum(b, i)->busy_ns >= BUSY_PERCENT * gpu_device__time(gpu_busy__sum(b, i)))
			return true;
	return false;
}

/* States which thread made most launches if most have not the finding's code: PyTorch's engine has no Python code. */
static void add_launcher(const struct calls *c, struct finding *f)
{
	const struct calls_sum *most = NULL;
	const struct task *task;
	u32 tid = 0;

	MAP_EACH_ENTRY(const struct calls_sum *s, const struct calls_key *key, &c->threads) {
		if (key->pid != f->pid || key->class != CALLS_LAUNCH || (most && s->times <= most->times))
			continue;
		most = s;
		tid = key->id;
	}
	if (!most || f->threads < 2 || gpu_calls__fill_code(c->in, f->pid, f->call, &f->code) >= 50)
		return;
	task = names__task(c->in->q->names, f->pid, tid);
	snprintf(f->detail, sizeof(f->detail), "%.0f%% of them in thread %u (%s)",
		 table__percent(most->times, f->times), names__number(c->in->q->names, tid),
		 task ? task__name(task) : "?");
}

static int add_launches(const struct calls *c, const struct calls_key *key, struct calls_sum s, struct findings *out)
{
	u64 duration = query__measured(c->in->q);
	u64 others = ns_of_class(c, key->pid, CALLS_WAIT) + ns_of_class(c, key->pid, CALLS_MEMORY);
	struct finding *f;

	if (s.times < duration / LAUNCH_EVERY_NS || 100 * s.run < LAUNCHING_PERCENT * duration ||
	    100 * others > OTHER_CALLS_PERCENT * duration || has_busy_gpu(c->in, key->pid))
		return 0;
	s.ns = s.run;
	f = add(c, key, &s, FINDING_LAUNCHES, out);
	if (!f)
		return -ENOMEM;
	f->is_measured_part = true;
	add_launcher(c, f);
	snprintf(f->advice, sizeof(f->advice), "%s",
		 "Larger or fused kernels (`torch.compile`) and CUDA graphs need fewer launches.");
	return 0;
}

static int add_findings(const struct calls *c, struct findings *out)
{
	int err = 0;

	for (u32 i = 0; !err && i < c->processes.n; i++) {
		const struct calls_key *key = map__key(&c->processes, i);
		const struct calls_sum *s = map__value(&c->processes, i);

		if (key->class == CALLS_MEMORY)
			err = add_memory(c, key, s, out);
		else if (key->class == CALLS_LAUNCH)
			err = add_launches(c, key, *s, out);
	}
	return err;
}

static int find(const struct finding_input *in, struct findings *out)
{
	struct calls c = { .in = in };
	int err;

	map__init(&c.threads, sizeof(struct calls_key), sizeof(struct calls_sum));
	map__init(&c.functions, sizeof(struct calls_key), sizeof(struct calls_sum));
	map__init(&c.processes, sizeof(struct calls_key), sizeof(struct calls_sum));
	/* without the scheduler's events, time in calls of CUDA is a wait like any other */
	err = in->cuda && in->profile->has_sched ? sum_calls(&c) : 0;
	if (!err)
		err = sum_threads(&c);
	if (!err)
		err = add_findings(&c, out);
	MAPS_FREE(&c.threads, &c.functions, &c.processes);
	return err;
}

FINDINGS(gpu_calls) = { .name = "gpu-calls", .find = find };
