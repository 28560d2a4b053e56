// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Event loops that no Python frame of a callback shows. They are of two kinds:
 *
 * - A compiled loop, such as uvloop's. Python frames seem to call each other, and native frames are known only inside
 *   of the innermost one. But while the loop itself runs or waits, the innermost Python frame is the one that called
 *   the loop. All that this frame seems to call at the same instruction is called by the loop.
 * - A hub of greenlets, such as gevent's. Each greenlet has a Python stack of its own, which begins with the function
 *   that it runs. So if the hub is seen in a thread, the thread's other stacks are of greenlets. A hub that is blocked
 *   all the time is not seen. But if the process maps the library, a stack can only begin with a function that
 *   starts neither a program nor a thread if it is a greenlet's.
 *
 * Where the process maps such a library, and nothing else is seen, the main thread may run a loop.
 */
#include "findings/hidden_loops.h"

#include <errno.h>
#include <string.h>

#include "findings/classify.h"
#include "findings/rules.h"
#include "model/query.h"
#include "util/path.h"

/* Native frames between a compiled loop's function and the Python function that called it; a trace may have more. */
#define NATIVE_MAX 64

struct search {
	const struct finding_input *in;
	struct map libraries; /* u32 pid -> u32: role of a library with hidden loops that the process maps */
	struct map hubs; /* struct thread_key: threads in which a hub was seen */
};

static bool has_role(const struct stack_frame *f, enum rule_role role)
{
	const struct rule *rule = rule__of(f);

	return rule && rule->role == role;
}

/* Notes the callers of compiled loops. Returns whether a stack begins with a hub. */
static bool scan_frames(const struct stacks *stacks)
{
	bool has_hub = false;

	for (u32 i = 0; i < stacks__count(stacks); i++) {
		u32 at = stacks__id(stacks, i);
		const struct stack_frame *f = stacks__frame(stacks, at);

		has_hub = has_hub || (f->kind == FRAME_PYTHON && !f->caller && has_role(f, RULE_LOOPS));
		if (f->kind != FRAME_NATIVE || !has_role(f, RULE_NATIVE_LOOPS))
			continue;
		for (u32 n = 0; f && f->kind == FRAME_NATIVE && n < NATIVE_MAX; n++) {
			at = f->caller;
			f = stacks__frame(stacks, at);
		}
		if (f && f->kind == FRAME_PYTHON)
			stack_parts__note_loop(stacks, at, true);
	}
	return has_hub;
}

static int on_maps(const struct rows *rows, void *arg)
{
	const struct schema_event *e = rows__event(rows);
	FIELDS_OF(e, path);
	struct common_fields f = common_fields__of(e);
	struct search *s = arg;

	for (u32 i = 0; i < rows__count(rows); i++) {
		struct stack_frame library = {
			.kind = FRAME_NATIVE,
			.symbol = "",
			.file = trace__string(s->in->q->trace, (u32)rows__u64(rows, path, i)),
		};
		const struct rule *rule = rule__of(&library);
		u32 pid = (u32)rows__s64(rows, f.pid, i), *role;

		if (!rule || rule->role < RULE_NATIVE_LOOPS)
			continue;
		role = map__get(&s->libraries, &pid);
		if (!role)
			return -ENOMEM;
		*role = rule->role > *role ? rule->role : *role;
	}
	return 0;
}

static u32 outermost(const struct stacks *stacks, u32 stack)
{
	const struct stack_frame *f = stacks__frame(stacks, stack);

	while (f && f->caller) {
		stack = f->caller;
		f = stacks__frame(stacks, stack);
	}
	return stack;
}

/* Calls fn with the thread and the outermost Python frame of each stack of the profile. */
static int each_outermost(struct search *s, int (*fn)(struct search *s, const struct thread_key *thread, u32 id,
						      const struct stack_frame *f))
{
	const struct profile *p = s->in->profile;
	u32 n = p->cells.n + p->samples.n;
	int err = 0;

	for (u32 i = 0; !err && i < n; i++) {
		const struct profile_key *cell = i < p->cells.n ? profile__key(p, i) : NULL;
		const struct profile_sample_key *sample = cell ? NULL : map__key(&p->samples, i - p->cells.n);
		u32 id = outermost(s->in->stacks, cell ? cell->stack : sample->stack);
		const struct stack_frame *f = stacks__frame(s->in->stacks, id);

		if (f && f->kind == FRAME_PYTHON)
			err = fn(s, cell ? &cell->thread : &sample->thread, id, f);
	}
	return err;
}

static int add_hub(struct search *s, const struct thread_key *thread, u32 id, const struct stack_frame *f)
{
	(void)id;
	return !has_role(f, RULE_LOOPS) || map__get(&s->hubs, thread) ? 0 : -ENOMEM;
}

/* Does a stack of a process that maps a library of greenlets begin with this function because it is a greenlet's? */
static bool starts_greenlet(const struct thread_key *thread, const struct stack_frame *f)
{
	/* the library may replace threads by greenlets: the main thread never begins with a thread's first function */
	if (stack_frame__is_library(f))
		return thread->pid == thread->tid && path__ends_with(f->file, "/threading.py");
	return strcmp(f->name, "<module>") && !rule__of(f);
}

static int note_greenlet(struct search *s, const struct thread_key *thread, u32 id, const struct stack_frame *f)
{
	const u32 *role = map__find(&s->libraries, &thread->pid);

	if (map__find(&s->hubs, thread) || (role && *role == RULE_GREENLETS && starts_greenlet(thread, f)))
		stack_parts__note_loop(s->in->stacks, id, false);
	return 0;
}

int hidden_loops__find(const struct finding_input *in)
{
	struct search s = { .in = in };
	struct query all = *in->q;
	int err;

	all.from = all.to = 0;
	all.tids.n = 0;
	map__init(&s.libraries, sizeof(u32), sizeof(u32));
	map__init(&s.hubs, sizeof(struct thread_key), sizeof(u8));
	err = query__read_kind(&all, "proc_map", on_maps, &s);
	if (scan_frames(in->stacks) && !err)
		err = each_outermost(&s, add_hub);
	if (!err && (s.libraries.n || s.hubs.n))
		err = each_outermost(&s, note_greenlet);
	MAP_EACH_ENTRY(struct profile_thread *t, const struct thread_key *key, &in->profile->threads)
		t->may_run_loop = key->pid == key->tid && map__find(&s.libraries, &key->pid);
	MAPS_FREE(&s.libraries, &s.hubs);
	return err;
}
