// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Report locks, second part: which code waited for locks, which code held them, and what it did meanwhile. */
#include <stdio.h>

#include "model/lock_text.h"
#include "output/text.h"
#include "report/os/lock_blame.h"

struct filling {
	const struct query *args;
	struct report_output *out;
	struct lock_blame *blame;
	struct stacks *stacks;
	struct activity *activity;
	u64 total, unknown; /* ns of waits for locks; the part without a known holder */
};

static const struct column held_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "lock", "Lock", VALUE_U64, SHOW_HEX },
	{ "waiter", "Waiter", VALUE_TEXT, SHOW_PLAIN },
	{ "waiters", "Threads", VALUE_U64, SHOW_COUNT },
	{ "holder", "Held by", VALUE_TEXT, SHOW_PLAIN },
	{ "holder_tid", "Thread", VALUE_U64, SHOW_NEVER },
	{ "chain_end", "Holder waited for", VALUE_TEXT, SHOW_PLAIN },
	{ "activity", "Activity of the holder", VALUE_TEXT, SHOW_PLAIN },
	{ "activity_percent", "Wait %", VALUE_DOUBLE, SHOW_PERCENT },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
	{ "share_percent", "Share %", VALUE_DOUBLE, SHOW_PERCENT },
};

static const struct column signalled_columns[] = {
	{ "pid", "PID", VALUE_U64, SHOW_PLAIN },
	{ "kind", "Kind", VALUE_TEXT, SHOW_PLAIN },
	{ "waiter", "Waiter", VALUE_TEXT, SHOW_PLAIN },
	{ "waiters", "Threads", VALUE_U64, SHOW_COUNT },
	{ "signaller", "Ended by", VALUE_TEXT, SHOW_PLAIN },
	{ "waits", "Waits", VALUE_U64, SHOW_COUNT },
	{ "wait_ns", "Waited", VALUE_U64, SHOW_NS },
};

static struct value activity_value(const struct filling *f, const struct lock_main_activity *did, char *buf)
{
	struct text_buffer s = { .buf = buf, .size = LOCK_TEXT };
	char text[128], code[STACK_LABEL];

	if (!did->ns)
		return V_NONE;
	text__add(&s, "%s", lock_text__activity(f->activity, did->reason, text, sizeof(text)));
	if (did->frame)
		text__add(&s, " in %s", lock_text__code(f->stacks, did->frame, code, sizeof(code)));
	return V_TEXT(buf);
}

static struct value code_value(const struct filling *f, u32 frame, char *buf)
{
	return frame ? V_TEXT(lock_text__code(f->stacks, frame, buf, STACK_LABEL)) : V_NONE;
}

static void add_held(struct filling *f, struct table *t, u32 i)
{
	const struct lock_row_key *key = lock_blame__key(f->blame, i);
	const struct lock_row *row = lock_blame__row(f->blame, i);
	struct lock_main_activity did = lock_blame__main_activity(f->blame, i);
	char waiter[STACK_LABEL], holder[STACK_LABEL], last[STACK_LABEL], activity[LOCK_TEXT];
	bool is_chain = row->last != row->holder;

	table__add(t, V_U64(key->pid), V_U64(key->address), code_value(f, row->waiter, waiter), V_U64(row->waiters),
		   code_value(f, row->holder, holder), row->held_by.tid ? V_U64(row->held_by.tid) : V_NONE,
		   key->is_cycle ? V_TEXT("the waiter: a deadlock") :
		   is_chain	 ? code_value(f, row->last, last) :
				   V_NONE,
		   activity_value(f, &did, activity), did.ns ? V_DBL(did.percent) : V_NONE, V_U64(row->waits),
		   V_U64(row->ns), V_DBL(table__percent(row->ns, f->total)));
}

static void add_signalled(struct filling *f, struct table *t, u32 i)
{
	const struct lock_row_key *key = lock_blame__key(f->blame, i);
	const struct lock_row *row = lock_blame__row(f->blame, i);
	char waiter[STACK_LABEL], holder[STACK_LABEL];

	table__add(t, V_U64(key->pid), V_TEXT(lock_kind__text(key->kind)), code_value(f, row->waiter, waiter),
		   V_U64(row->waiters), code_value(f, row->holder, holder), V_U64(row->waits), V_U64(row->ns));
}

/* Adds a finding on the longest wait with known code, unless it is less than a hundredth of the time. */
static void add_finding(struct filling *f)
{
	char sentence[4 * LOCK_TEXT], time[TEXT_NUMBER];
	u64 duration = query__measured(f->args);
	u32 i = 0;

	while (i < lock_blame__rows(f->blame) &&
	       (lock_blame__key(f->blame, i)->kind != LOCK_KIND_MUTEX || !lock_blame__row(f->blame, i)->waiter))
		i++;
	if (i == lock_blame__rows(f->blame) || 100 * lock_blame__row(f->blame, i)->ns < duration)
		return;
	text__ns(time, sizeof(time), lock_blame__row(f->blame, i)->ns);
	report_output__finding(f->out, "%s.",
			       lock_text__sentence(f->blame, f->activity, f->stacks, i, time, sentence,
						   sizeof(sentence)));
	REPORT_FIGURES(f->out, FIGURE("pid", V_U64(lock_blame__key(f->blame, i)->pid)),
		       FIGURE("wait_ns", V_U64(lock_blame__row(f->blame, i)->ns)));
}

static void fill(struct filling *f)
{
	struct table *held = REPORT_TABLE(f->out, "held", "Which code held locks that others waited for", held_columns);
	struct table *signalled = REPORT_TABLE(f->out, "signalled",
					       "Waits for conditions, queues and threads, and which code ended them",
					       signalled_columns);
	char left_out[128];

	held->limit = 30;
	held->details = "lock share_percent waiters chain_end";
	signalled->limit = 20;
	for (u32 i = 0; i < lock_blame__rows(f->blame); i++) {
		bool is_lock = lock_blame__key(f->blame, i)->kind == LOCK_KIND_MUTEX;

		f->total += is_lock ? lock_blame__row(f->blame, i)->ns : 0;
		f->unknown += is_lock && !lock_blame__key(f->blame, i)->is_known ? lock_blame__row(f->blame, i)->ns : 0;
	}
	for (u32 i = 0; i < lock_blame__rows(f->blame); i++) {
		if (lock_blame__key(f->blame, i)->kind == LOCK_KIND_MUTEX)
			add_held(f, held, i);
		else
			add_signalled(f, signalled, i);
	}
	add_finding(f);
	if (f->unknown)
		report_output__note(f->out,
				    "Of %.1f%% of the waiting for locks the holder is not known: no release was seen.",
				    table__percent(f->unknown, f->total));
	if (lock_blame__left_out(f->blame))
		report_output__note(f->out, "%s",
				    lock_text__left_out(lock_blame__left_out(f->blame), left_out, sizeof(left_out)));
}

static int on_interval(const struct activity_interval *i, void *arg)
{
	return lock_blame__interval(((struct filling *)arg)->blame, i);
}

int lock_blame_tables__add(const struct query *args, struct report_output *out, bool *has_rows)
{
	struct filling f = { .args = args, .out = out };
	int err = stacks__load(&f.stacks, args->trace);

	if (!err)
		err = activity__new(&f.activity, args, ACTIVITY_DETAILS);
	if (!err)
		err = lock_blame__new(&f.blame, args, f.stacks, f.activity);
	if (!err && lock_blame__needs_activity(f.blame))
		err = activity__read(f.activity, on_interval, &f);
	if (!err)
		err = lock_blame__finish(f.blame);
	if (!err)
		fill(&f);
	*has_rows = !err && lock_blame__rows(f.blame);
	lock_blame__free(f.blame);
	activity__free(f.activity);
	stacks__free(f.stacks);
	return err;
}
