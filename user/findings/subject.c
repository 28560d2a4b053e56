// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/subject.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/compare.h"
#include "util/path.h"

/* A part of a name may match very many threads and functions: only the first that are found are listed. */
#define CANDIDATES_MAX 1000

struct search {
	struct subject *s;
	const struct finding_input *in;
	const char *text;
	bool part; /* names that contain the text match, too */
	int err;
	u32 stacks; /* number of stacks that were searched */
};

static const struct thread_key *thread_at(const struct profile *p, u32 i)
{
	return map__key(&p->threads, i);
}

static u64 wall_of(const struct profile *p, u32 i)
{
	return ((const struct profile_thread *)map__value(&p->threads, i))->wall;
}

/* The thread must not be in the list yet. */
static int add_thread(struct subject *s, struct thread_key thread)
{
	return array__push(s->threads, s->n, thread) ? 0 : -ENOMEM;
}

static int add_process(struct subject *s, const struct profile *p, u32 pid)
{
	for (u32 i = 0; i < p->threads.n; i++)
		if (thread_at(p, i)->pid == pid && !array__push(s->threads, s->n, *thread_at(p, i)))
			return -ENOMEM;
	return 0;
}

/* Returns the thread of the process that spent most time in this kind. */
static struct thread_key busiest(const struct finding_input *in, u32 pid, enum finding_kind kind)
{
	const struct profile *p = in->profile;
	struct thread_key best = { pid, pid };
	u64 most = 0, *ns;
	struct map sums;

	map__init(&sums, sizeof(struct thread_key), sizeof(u64));
	for (u32 i = 0; i < p->cells.n; i++) {
		const struct profile_key *key = profile__key(p, i);

		if (key->thread.pid != pid || profile__cell(p, i)->kind != (u32)kind)
			continue;
		ns = map__get(&sums, &key->thread);
		if (!ns)
			continue;
		*ns += profile__cell(p, i)->ns;
		if (*ns > most) {
			most = *ns;
			best = key->thread;
		}
	}
	map__free(&sums);
	return best;
}

static int find_first(struct subject *s, const struct findings *f)
{
	const struct finding *first = findings__ranked(f, 0);

	if (!first)
		return 0;
	s->kind = SUBJECT_THREAD;
	return add_thread(s, first->tid ? (struct thread_key){ first->pid, first->tid } :
					  busiest(findings__input(f), first->pid, first->kind));
}

/*
 * Takes the number for a pid, or for a tid if no process had it. Several processes may have had the pid, one after the
 * other: all of them are added.
 */
static int find_number(struct subject *s, const struct finding_input *in, u32 number)
{
	const struct profile *p = in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->threads.n; i++)
		if (names__number(in->q->names, thread_at(p, i)->pid) == number) {
			s->kind = SUBJECT_PROCESS;
			err = add_thread(s, *thread_at(p, i));
		}
	for (u32 i = 0; !err && s->kind == SUBJECT_NONE && i < p->threads.n; i++)
		if (names__number(in->q->names, thread_at(p, i)->tid) == number) {
			s->kind = SUBJECT_THREAD;
			return add_thread(s, *thread_at(p, i));
		}
	return err;
}

static bool contains(const char *name, const char *text)
{
	return strcasestr(name, text) != NULL;
}

static bool matches(const struct search *f, const char *name)
{
	return name && *name && (f->part ? contains(name, f->text) : !strcmp(name, f->text));
}

/* The text may be "handle", "Server.handle", "srv.py:12" or "handle (srv.py)". */
static bool matches_function(const struct search *f, const struct stack_frame *frame, const char *full)
{
	const char *last = strrchr(frame->name, '.'), *file = path__file_name(frame->file);
	char line[STACK_LABEL];

	if (!*frame->name)
		return false;
	if (f->part)
		return contains(full, f->text);
	snprintf(line, sizeof(line), "%s:%u", file, frame->line);
	return !strcmp(frame->name, f->text) || (last && !strcmp(last + 1, f->text)) || !strcmp(full, f->text) ||
	       !strcmp(line, f->text);
}

static void add_candidate(struct search *f, enum subject_kind kind, struct thread_key thread, const char *name, u64 ns)
{
	struct subject_candidate c = {
		.kind = kind, .pid = thread.pid, .tid = thread.tid, .search = f->stacks, .ns = ns
	};
	struct subject *s = f->s;

	snprintf(c.name, sizeof(c.name), "%s", name);
	for (u32 i = 0; i < s->n_candidates; i++) {
		struct subject_candidate *o = &s->candidates[i];

		if (o->kind != kind || strcmp(o->name, c.name) || (kind != SUBJECT_FUNCTION && o->pid != c.pid))
			continue;
		/* a function that is on a stack several times, by recursion, has the stack's time only once */
		if (kind == SUBJECT_FUNCTION && o->search == f->stacks)
			return;
		o->search = f->stacks;
		o->ns += ns;
		o->tid = o->tid == c.tid ? c.tid : 0;
		return;
	}
	s->is_cut |= s->n_candidates == CANDIDATES_MAX;
	if (!s->is_cut && !array__push(s->candidates, s->n_candidates, c))
		f->err = -ENOMEM;
}

/* Arguments match without their directories: "srv.py" finds "/usr/bin/python3 -u /opt/srv.py --port 80". */
static bool has_argument(const struct search *f, u32 pid)
{
	const struct task *t = names__task(f->in->q->names, pid, 0);
	const char *from = t ? names__string(f->in->q->names, t->command) : "";

	for (size_t len; *from; from += len) {
		char argument[256];

		from += strspn(from, " ");
		len = strcspn(from, " ");
		snprintf(argument, sizeof(argument), "%.*s", (int)len, from);
		if (matches(f, path__file_name(argument)))
			return true;
	}
	return false;
}

static void search_threads(struct search *f)
{
	const struct profile *p = f->in->profile;
	const struct names *names = f->in->q->names;

	for (u32 i = 0; i < p->threads.n; i++) {
		struct thread_key thread = *thread_at(p, i), process = { thread.pid, 0 };
		const char *comm = names__comm(names, thread.pid, 0), *own;
		const char *title = NAMES_TITLE(names, thread.pid, 0);

		if (matches(f, comm) || matches(f, title) || has_argument(f, thread.pid))
			add_candidate(f, SUBJECT_PROCESS, process, title ?: "", wall_of(p, i));
		own = names__comm(names, thread.pid, thread.tid);
		/* the function in a default name is found as a function */
		if (own && f->part && names__is_default(own))
			continue;
		if (own && (!comm || strcmp(own, comm)) && matches(f, own))
			add_candidate(f, SUBJECT_THREADS, thread, own, wall_of(p, i));
	}
}

/* Adds the stack's innermost function with the searched name; with f->part, all functions whose names contain it. */
static void search_stack(struct search *f, u32 stack, u64 ns)
{
	const struct stacks *stacks = f->in->stacks;
	const struct stack_frame *frame;
	char name[STACK_LABEL];
	u32 depth = 0;

	f->stacks++;
	for (u32 at = stack; (frame = stacks__frame(stacks, at)) != NULL && depth++ < STACKS_DEEPEST;
	     at = frame->caller) {
		stacks__function(stacks, at, name, sizeof(name));
		if (!matches_function(f, frame, name))
			continue;
		add_candidate(f, SUBJECT_FUNCTION, (struct thread_key){ 0 }, name, ns);
		if (!f->part)
			return;
	}
}

static void search_functions(struct search *f)
{
	const struct profile *p = f->in->profile;

	for (u32 i = 0; i < p->cells.n; i++)
		search_stack(f, profile__key(p, i)->stack, profile__cell(p, i)->ns);
	MAP_EACH_ENTRY(const struct profile_sample *sample, const struct profile_sample_key *key, &p->samples)
		search_stack(f, key->stack, sample->ns);
}

static bool is_on_stack(const struct subject *s, const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *frame;
	char name[STACK_LABEL];
	u32 depth = 0;

	for (u32 at = stack; (frame = stacks__frame(stacks, at)) != NULL && depth++ < STACKS_DEEPEST;
	     at = frame->caller)
		if (!strcmp(stacks__function(stacks, at, name, sizeof(name)), s->name))
			return true;
	return false;
}

enum { STACK_HAS = 1, STACK_HAS_NOT };

bool subject__has_function(struct subject *s, const struct stacks *stacks, u32 stack)
{
	u8 *known = map__get(&s->stacks, &stack);

	/* out of memory: the answer can't be stored, so the stack is searched at each call */
	if (!known)
		return is_on_stack(s, stacks, stack);
	if (!*known)
		*known = is_on_stack(s, stacks, stack) ? STACK_HAS : STACK_HAS_NOT;
	return *known == STACK_HAS;
}

/* Adds the thread if the function is on this stack of it, and only once. added: struct thread_key -> u8 */
static int add_thread_in(struct subject *s, const struct finding_input *in, struct thread_key thread, u32 stack,
			 struct map *added)
{
	u8 *is_added;

	if (!subject__has_function(s, in->stacks, stack))
		return 0;
	is_added = map__get(added, &thread);
	if (!is_added)
		return -ENOMEM;
	if (*is_added)
		return 0;
	*is_added = 1;
	return add_thread(s, thread);
}

/* Adds all threads that waited or ran with the function on their stack. */
static int add_threads_in(struct subject *s, const struct finding_input *in)
{
	const struct profile *p = in->profile;
	struct map added;
	int err = 0;

	map__init(&added, sizeof(struct thread_key), sizeof(u8));
	for (u32 i = 0; !err && i < p->cells.n; i++)
		err = add_thread_in(s, in, profile__key(p, i)->thread, profile__key(p, i)->stack, &added);
	for (u32 i = 0; !err && i < p->samples.n; i++) {
		const struct profile_sample_key *key = map__key(&p->samples, i);

		err = add_thread_in(s, in, key->thread, key->stack, &added);
	}
	map__free(&added);
	return err;
}

static int add_threads_named(struct subject *s, const struct finding_input *in, u32 pid)
{
	const struct profile *p = in->profile;
	int err = 0;

	for (u32 i = 0; !err && i < p->threads.n; i++) {
		const struct thread_key *t = thread_at(p, i);
		const char *comm = names__comm(in->q->names, t->pid, t->tid);

		if (t->pid == pid && comm && !strcmp(comm, s->name))
			err = add_thread(s, *t);
	}
	return err;
}

static int choose(struct subject *s, const struct finding_input *in, const struct subject_candidate *c)
{
	s->kind = c->kind;
	snprintf(s->name, sizeof(s->name), "%s", c->name);
	if (c->kind == SUBJECT_PROCESS)
		return add_process(s, in->profile, c->pid);
	return c->kind == SUBJECT_FUNCTION ? add_threads_in(s, in) : add_threads_named(s, in, c->pid);
}

COMPARE_BY(by_ns, struct subject_candidate, DESCENDING(ns))

static int find_name(struct subject *s, const struct finding_input *in, const char *text)
{
	struct search f = { .s = s, .in = in, .text = text };

	search_threads(&f);
	search_functions(&f);
	s->is_exact = s->n_candidates;
	f.part = true;
	if (!s->n_candidates) {
		search_threads(&f);
		search_functions(&f);
	}
	if (f.err)
		return f.err;
	if (s->n_candidates == 1)
		return choose(s, in, &s->candidates[0]);
	if (s->n_candidates)
		qsort(s->candidates, s->n_candidates, sizeof(*s->candidates), by_ns);
	return 0;
}

int subject__find(struct subject *s, const struct findings *f, const char *text)
{
	char *end;
	unsigned long number;

	*s = (struct subject){ 0 };
	map__init(&s->stacks, sizeof(u32), sizeof(u8));
	if (!text || !*text)
		return find_first(s, f);
	number = strtoul(text, &end, 10);
	if (isdigit((unsigned char)*text) && !*end && number <= 0xffffffff)
		return find_number(s, findings__input(f), (u32)number);
	return find_name(s, findings__input(f), text);
}

void subject__free(struct subject *s)
{
	free(s->threads);
	free(s->candidates);
	map__free(&s->stacks);
}
