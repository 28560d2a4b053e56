// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The threads of a pool are those with a function that takes tasks on their stacks (rules of roles `runs` and
 * `native-runs`). Python names the threads of one pool by a common name and a number, "ThreadPoolExecutor-0_3"; a
 * native pool has the words of its rule.
 */
#include "findings/thread_pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/group.h"
#include "findings/rules.h"
#include "output/table.h"

/* What is known about a thread, and about all threads of a pool */
struct workers {
	u64 idle, wall; /* ns */
	u32 threads;
	const char *words; /* of a native pool; NULL: it is not one */
	bool is_finding; /* the finding's code runs in one */
};

struct pool_name {
	char text[64];
};

/* A pool is busy if its threads idle for less than a twentieth of their time. */
#define IDLE_PART 20

static bool is_code(const struct finding_input *in, u32 frame, const struct finding_code *code)
{
	struct finding_code its = { 0 };

	if (!frame || !*code->function)
		return false;
	finding_code__fill(&its, in->stacks, frame);
	return finding_code__is_same(&its, code);
}

static bool is_native(const struct finding_input *in, u32 stack, const struct finding_code *code)
{
	struct finding_code its = { 0 };

	finding_code__fill(&its, in->stacks, stack);
	return *code->native && !strcmp(its.native, code->native);
}

/* Notes a stack of a thread other than the main one. */
static int note(const struct finding_input *in, const struct finding *f, struct thread_key thread, u32 stack,
		struct map *threads, u64 idle)
{
	struct stack_parts parts = stack_parts__of(in->stacks, stack);
	struct workers *w;

	if (thread.pid != f->pid || thread.tid == thread.pid || !parts.worker)
		return 0;
	w = map__get(threads, &thread.tid);
	if (!w)
		return -ENOMEM;
	w->idle += idle;
	w->words = rule__of(stacks__frame(in->stacks, parts.worker))->words;
	w->is_finding = w->is_finding || is_code(in, parts.user, &f->code);
	return 0;
}

/* Finds the threads of pools in the finding's process. */
static int find_threads(const struct finding_input *in, const struct finding *f, struct map *threads)
{
	int err = 0;

	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells)
		err = err ? err :
			    note(in, f, key->thread, key->stack, threads, cell->kind == FINDING_IDLE ? cell->ns : 0);
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		(void)s;
		err = err ? err : note(in, f, key->thread, key->stack, threads, 0);
	}
	/* a native stack may be cut before the function that takes tasks */
	MAP_EACH_ENTRY(const struct profile_sample *s, const struct profile_sample_key *key, &in->profile->samples) {
		struct workers *w = key->thread.pid == f->pid ? map__find(threads, &key->thread.tid) : NULL;

		(void)s;
		if (w && w->words)
			w->is_finding = w->is_finding || is_native(in, key->stack, &f->code);
	}
	return err;
}

/* Writes the name of the thread's pool: that of the thread without its number. */
static void name_pool(const struct names *names, u32 pid, u32 tid, struct pool_name *pool)
{
	const struct task *task = names__task(names, pid, tid);
	size_t len;

	snprintf(pool->text, sizeof(pool->text), "%s", task ? names__string(names, task->python) : "");
	len = strlen(pool->text);
	while (len && strchr("0123456789", pool->text[len - 1]))
		len--;
	len -= len && strchr("_-", pool->text[len - 1]) ? 1 : 0;
	memset(pool->text + len, 0, sizeof(pool->text) - len);
}

/* Sums the threads by pool. */
static int sum_pools(const struct finding_input *in, u32 pid, const struct map *threads, struct map *pools)
{
	MAP_EACH_ENTRY(const struct workers *w, const u32 *tid, threads) {
		struct thread_key thread = { pid, *tid };
		const struct profile_thread *t = map__find(&in->profile->threads, &thread);
		struct pool_name name = { 0 };
		struct workers *pool;

		if (w->words)
			strncpy(name.text, w->words, sizeof(name.text) - 1);
		else
			name_pool(in->q->names, pid, *tid, &name);
		pool = map__get(pools, &name);
		if (!pool)
			return -ENOMEM;
		pool->words = w->words;
		pool->threads++;
		pool->idle += w->idle;
		pool->wall += t ? t->wall : 0;
		pool->is_finding = pool->is_finding || w->is_finding;
	}
	return 0;
}

/* Returns how many of the process's threads wait for results for half of their time or longer. */
static u32 count_waiters(const struct finding_input *in, u32 pid)
{
	struct map waited; /* u32 tid -> u64 ns */
	u32 n = 0;

	map__init(&waited, sizeof(u32), sizeof(u64));
	MAP_EACH_ENTRY(const struct profile_cell *cell, const struct profile_key *key, &in->profile->cells) {
		u64 *ns = key->thread.pid == pid && cell->kind == FINDING_RESULT ? map__get(&waited, &key->thread.tid) :
										   NULL;

		if (ns)
			*ns += cell->ns;
	}
	MAP_EACH_ENTRY(const u64 *ns, const u32 *tid, &waited) {
		const struct profile_thread *t = map__find(&in->profile->threads, &(struct thread_key){ pid, *tid });

		n += t && 2 * *ns >= t->wall;
	}
	map__free(&waited);
	return n;
}

/*
 * A pool of Python's starts threads when it needs them, so tasks queue for a busy one only if more threads wait for
 * results than it has. A native pool has all its threads from the start.
 */
static const char *consequence(const struct workers *pool, u32 waiters)
{
	if (pool->words)
		return ": further tasks wait for a free one";
	return waiters > pool->threads ? ": tasks waited for a free one" : "";
}

static void add_busy(const struct finding_input *in, struct finding *f, const struct map *pools)
{
	bool waits_for_result = f->kind == FINDING_RESULT;
	u32 waiters = count_waiters(in, f->pid);
	char text[192], number[32];

	MAP_EACH_ENTRY(const struct workers *pool, const struct pool_name *name, pools) {
		/* threads that wait for results of a pool are not those of the pool */
		if (pool->is_finding == waits_for_result || IDLE_PART * pool->idle >= pool->wall)
			continue;
		/* a thread whose name is not known may be one of a pool with a name */
		if (!*name->text && pools->n > 1)
			continue;
		snprintf(number, sizeof(number), "all %u threads", pool->threads);
		snprintf(text, sizeof(text), "%s of %s%.*s%s busy for %.0f%% of the time%s",
			 pool->threads == 1 ? "the only thread" : number,
			 pool->words ? "" :
			 *name->text ? "the pool " :
				       "the pool",
			 (int)sizeof(name->text), name->text, pool->threads == 1 ? " was" : " were",
			 100 - table__percent(pool->idle, pool->wall), consequence(pool, waiters));
		finding__add_detail(f, text);
		break;
	}
}

int thread_pool__add(const struct finding_input *in, struct finding *f)
{
	struct map threads, pools; /* u32 tid -> struct workers, struct pool_name -> struct workers */
	int err;

	if (f->processes != 1 || f->kind == FINDING_IDLE || (!*f->code.function && !*f->code.native))
		return 0;
	map__init(&threads, sizeof(u32), sizeof(struct workers));
	map__init(&pools, sizeof(struct pool_name), sizeof(struct workers));
	err = find_threads(in, f, &threads);
	if (!err)
		err = sum_pools(in, f->pid, &threads, &pools);
	if (!err)
		add_busy(in, f, &pools);
	MAPS_FREE(&threads, &pools);
	return err;
}
