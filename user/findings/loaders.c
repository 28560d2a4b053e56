// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/loaders.h"

#include <errno.h>
#include <string.h>

#include "model/torch_steps.h"
#include "util/path.h"

#define ANCESTORS_MAX 4

/* What the functions of PyTorch in a stack say */
enum stack_flag {
	STACK_SEEN = 1,
	STACK_WORKER = 2, /* the loop of a worker process */
	STACK_NEXT = 4, /* the training process asked for a batch */
	STACK_OWN = 8, /* and loads it itself */
};

struct reading {
	struct loaders *loaders;
	const struct finding_input *in;
	struct map stacks; /* u32 stack -> u8: enum stack_flag */
	struct map threads; /* struct thread_key -> struct in_loader */
};

/* Time of a thread in a loader, by stacks */
struct in_loader {
	u64 ns;
	bool is_own;
};

static u8 flags_of_frame(const struct stack_frame *f)
{
	if (f->kind != FRAME_PYTHON)
		return 0;
	if (path__ends_with(f->file, "/torch/utils/data/_utils/worker.py"))
		return path__ends_with(f->name, "_worker_loop") ? STACK_WORKER : 0;
	if (!path__ends_with(f->file, "/torch/utils/data/dataloader.py"))
		return 0;
	return (path__ends_with(f->name, "__next__") ? STACK_NEXT : 0) |
	       (strstr(f->name, "_SingleProcessDataLoaderIter") ? STACK_OWN : 0);
}

/* Returns enum stack_flag of the stack. A worker has copies of the training process's frames outside of its own. */
static u8 flags_of(struct reading *r, u32 stack)
{
	u8 *known = map__get(&r->stacks, &stack), flags = STACK_SEEN;
	const struct stack_frame *f;

	if (known && *known)
		return *known;
	for (u32 at = stack; (f = stacks__frame(r->in->stacks, at)) != NULL && !(flags & STACK_WORKER); at = f->caller)
		flags |= flags_of_frame(f);
	if (known)
		*known = flags;
	return flags;
}

static int add_worker(struct reading *r, u32 pid)
{
	const struct task *t = names__task(r->in->q->names, pid, 0);
	struct loader_worker *w = map__get(&r->loaders->workers, &pid);

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	w->trainer = t ? t->ppid : 0;
	w->is_started = t && t->start;
	return 0;
}

static int add_in_loader(struct reading *r, struct thread_key thread, u64 ns, u8 flags)
{
	struct in_loader *t = map__get(&r->threads, &thread);

	if (!t)
		return -ENOMEM;
	t->ns += ns;
	t->is_own |= flags & STACK_OWN;
	return 0;
}

static int add_stack(struct reading *r, struct thread_key thread, u32 stack, u64 ns, bool counts)
{
	u8 flags = flags_of(r, stack);

	if (flags & STACK_WORKER)
		return add_worker(r, thread.pid);
	return counts && flags & STACK_NEXT ? add_in_loader(r, thread, ns, flags) : 0;
}

/* Finds worker processes by their names and stacks, and what threads spent in a loader. */
static int read_stacks(struct reading *r)
{
	const struct profile *p = r->in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->cells.n; i++) {
		const struct profile_key *k = profile__key(p, i);

		err = add_stack(r, k->thread, k->stack, profile__cell(p, i)->ns, k->state != ACTIVITY_RUNNING);
	}
	for (u32 i = 0; !err && i < p->samples.n; i++) {
		const struct profile_sample_key *k = map__key(&p->samples, i);
		const struct profile_sample *s = map__value(&p->samples, i);

		err = add_stack(r, k->thread, k->stack, s->ns, true);
	}
	for (u32 i = 0; !err && i < p->threads.n; i++) {
		const struct thread_key *k = map__key(&p->threads, i);
		const char *comm = k->pid == k->tid ? names__comm(r->in->q->names, k->pid, k->tid) : NULL;

		if (comm && !strcmp(comm, "pt_data_worker"))
			err = add_worker(r, k->pid);
	}
	return err;
}

static enum loader_part part_of(const struct profile_key *k, const struct profile_cell *c)
{
	if (k->state == ACTIVITY_RUNNING)
		return LOADER_RUN;
	switch (c->kind) {
	case FINDING_DISK:
	case FINDING_BLOCKED:
	case FINDING_MEMORY:
		return LOADER_DISK;
	case FINDING_CPU:
	case FINDING_QUOTA:
	case FINDING_AFFINITY:
		return LOADER_CPU;
	case FINDING_PEER:
		return LOADER_NET;
	case FINDING_IDLE:
		return LOADER_IDLE;
	default:
		return LOADER_OTHER;
	}
}

static void sum_workers(struct reading *r)
{
	const struct profile *p = r->in->profile;

	MAP_EACH_ENTRY(const struct profile_cell *c, const struct profile_key *k, &p->cells) {
		struct loader_worker *w = map__find(&r->loaders->workers, &k->thread.pid);

		if (!w)
			continue;
		if (k->thread.pid != k->thread.tid) {
			w->pickle_ns += k->state == ACTIVITY_RUNNING ? c->ns : 0;
			continue;
		}
		w->ns[part_of(k, c)] += c->ns;
		w->wall_ns += c->ns;
	}
}

static struct loader *loader_of(struct reading *r, u32 pid)
{
	struct loader *l = map__get(&r->loaders->list, &pid);

	if (l)
		l->pid = pid;
	return l;
}

/* The thread of each training process that was in a loader longest, by its recorded steps or by stacks */
static int read_trainers(struct reading *r)
{
	const struct torch_steps *steps = r->in->torch;
	struct loader *l;

	for (u32 i = 0; steps && i < steps->n; i++) {
		const struct torch_loop *loop = &steps->loops[i];

		if (!*loop->loader)
			continue;
		l = loader_of(r, loop->pid);
		if (!l)
			return -ENOMEM;
		l->batches += loop->batches;
		l->is_own |= strstr(loop->loader, "SingleProcess") != NULL;
		if (l->has_steps && loop->phase_total_ns[PHASE_DATA] <= l->wait_ns)
			continue;
		l->has_steps = true;
		l->tid = loop->tid;
		l->wait_ns = loop->phase_total_ns[PHASE_DATA];
		l->wall_ns = loop->total_ns;
	}
	MAP_EACH_ENTRY(const struct in_loader *t, const struct thread_key *k, &r->threads) {
		const struct profile_thread *all = map__find(&r->in->profile->threads, k);

		l = loader_of(r, k->pid);
		if (!l)
			return -ENOMEM;
		if (!all || l->has_steps || t->ns <= l->wait_ns)
			continue;
		l->tid = k->tid;
		l->wait_ns = t->ns < all->wall ? t->ns : all->wall;
		l->wall_ns = all->wall;
		l->is_own = t->is_own;
	}
	return 0;
}

/*
 * The fork server of multiprocessing starts a worker in its own name: then the training process is a further ancestor,
 * which was in a loader. Without such an ancestor it is the parent.
 */
static u32 trainer_of(const struct reading *r, u32 parent)
{
	const struct task *t;
	u32 pid = parent;

	for (u32 i = 0; pid && i < ANCESTORS_MAX; i++, pid = t ? t->ppid : 0) {
		if (map__find(&r->loaders->list, &pid))
			return pid;
		t = names__task(r->in->q->names, pid, 0);
	}
	return parent;
}

static int add_workers(struct reading *r)
{
	for (u32 i = 0; i < r->loaders->workers.n; i++) {
		struct loader_worker *w = map__value(&r->loaders->workers, i);

		w->trainer = trainer_of(r, w->trainer);
	}
	for (u32 i = 0; i < r->loaders->workers.n; i++) {
		const struct loader_worker *w = map__value(&r->loaders->workers, i), *busiest;
		struct loader *l = loader_of(r, w->trainer);

		if (!l)
			return -ENOMEM;
		busiest = map__value(&r->loaders->workers, l->busiest);
		if (!l->n_workers || w->ns[LOADER_RUN] > busiest->ns[LOADER_RUN])
			l->busiest = i;
		l->n_workers++;
		l->n_started += w->is_started;
		l->is_own = false;
		l->workers_ns += w->wall_ns;
		l->pickle_ns += w->pickle_ns;
		for (u32 part = 0; part < LOADER_PARTS; part++)
			l->ns[part] += w->ns[part];
	}
	return 0;
}

int loaders__read(struct loaders *l, const struct finding_input *in)
{
	struct reading r = { .loaders = l, .in = in };
	int err;

	map__init(&l->list, sizeof(u32), sizeof(struct loader));
	map__init(&l->workers, sizeof(u32), sizeof(struct loader_worker));
	map__init(&r.stacks, sizeof(u32), sizeof(u8));
	map__init(&r.threads, sizeof(struct thread_key), sizeof(struct in_loader));
	err = read_stacks(&r);
	if (!err) {
		sum_workers(&r);
		err = read_trainers(&r);
	}
	if (!err)
		err = add_workers(&r);
	MAPS_FREE(&r.stacks, &r.threads);
	return err;
}

void loaders__free(struct loaders *l)
{
	MAPS_FREE(&l->list, &l->workers);
}
