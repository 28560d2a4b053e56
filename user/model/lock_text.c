// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_text.h"

#include "model/demangle.h"
#include "util/path.h"

#include <stdio.h>
#include <string.h>

/* %s is the name of the call. */
static const char *const phrases[ACTIVITY_CAUSES] = {
	[ACTIVITY_ON_CPU] = "computed",
	[ACTIVITY_CPU] = "waited for a CPU",
	[ACTIVITY_QUOTA] = "was throttled by its CPU quota",
	[ACTIVITY_GIL] = "waited for the GIL",
	[ACTIVITY_LOCK] = "waited for another lock",
	[ACTIVITY_CONDITION] = "waited for another thread",
	[ACTIVITY_FUTEX] = "waited for another thread",
	[ACTIVITY_GC] = "collected garbage",
	[ACTIVITY_DISK] = "waited for the disk",
	[ACTIVITY_FAULT] = "read a page from the disk",
	[ACTIVITY_RECLAIM] = "waited for the kernel to free memory",
	[ACTIVITY_SLEEP] = "slept in %s",
	[ACTIVITY_SYNC] = "wrote to the disk in %s",
	[ACTIVITY_ASLEEP] = "slept",
	[ACTIVITY_UNINTERRUPTIBLE] = "was blocked in the kernel",
	[ACTIVITY_STOPPED] = "was stopped",
};

/* Writes " (srv.py:12)" as far as it is known. */
static char *write_file(const struct stack_frame *f, char *buf, size_t size)
{
	const char *file = path__file_name(f->file);

	*buf = '\0';
	if (*file && f->kind == FRAME_PYTHON && f->line)
		snprintf(buf, size, " (%s:%u)", file, f->line);
	else if (*file)
		snprintf(buf, size, " (%s)", file);
	return buf;
}

static char *write_code(const struct stacks *s, u32 frame, const char *quote, char *buf, size_t size)
{
	const struct stack_frame *f = stacks__frame(s, frame);
	char name[STACK_LABEL], file[STACK_LABEL];

	if (f && *f->name)
		snprintf(buf, size, "%s%s%s%s", quote,
			 f->kind == FRAME_PYTHON ? f->name : demangle__short(f->name, name, sizeof(name)), quote,
			 write_file(f, file, sizeof(file)));
	else
		stacks__label(s, frame, buf, size);
	return buf;
}

char *lock_text__code(const struct stacks *s, u32 frame, char *buf, size_t size)
{
	return write_code(s, frame, "", buf, size);
}

char *lock_text__activity(const struct activity *a, const struct lock_activity_key *key, char *buf, size_t size)
{
	enum activity_cause cause = activity__cause(a, key->reason);
	const char *phrase = phrases[cause], *name = activity__name(a, key->reason), *call;

	if (!phrase)
		phrase = "waited in %s";
	call = strstr(phrase, "%s");
	snprintf(buf, size, "%.*s%s", call ? (int)(call - phrase) : (int)strlen(phrase), phrase, call ? name : "");
	return buf;
}

struct longest {
	const struct activity *a;
	const struct stacks *stacks;
	u64 ns; /* of the row */
	char text[LOCK_TEXT];
};

static int write_longest(const struct lock_activity_key *key, const struct lock_activity *act, void *arg)
{
	struct longest *l = arg;
	const struct stack_frame *f = stacks__frame(l->stacks, act->frame);
	char did[128], name[STACK_LABEL];

	lock_text__activity(l->a, key, did, sizeof(did));
	if (f && f->kind == FRAME_PYTHON && *path__file_name(f->file) && f->line)
		snprintf(l->text, sizeof(l->text), "%s, at %s:%u", did, path__file_name(f->file), f->line);
	else if (f && *f->name)
		snprintf(l->text, sizeof(l->text), "%s, in %s", did, demangle__short(f->name, name, sizeof(name)));
	else
		snprintf(l->text, sizeof(l->text), "%s", did);
	/* an activity of less than a third of the row does not characterize it */
	if (3 * act->ns < l->ns)
		*l->text = '\0';
	return 1;
}

/*
 * Writes what the thread at the end of row i's chain mostly did: "slept in clock_nanosleep, at srv.py:8"; "": not
 * known, or several things. Returns buf.
 */
static char *write_did(const struct lock_blame *b, const struct activity *a, const struct stacks *s, u32 i, char *buf,
		       size_t size)
{
	struct longest longest = { .a = a, .stacks = s, .ns = lock_blame__row(b, i)->ns };

	lock_blame__activities(b, i, write_longest, &longest);
	snprintf(buf, size, "%s", longest.text);
	return buf;
}

char *lock_text__sentence(const struct lock_blame *b, const struct activity *a, const struct stacks *s, u32 i,
			  const char *share, char *buf, size_t size)
{
	const struct lock_row_key *key = lock_blame__key(b, i);
	const struct lock_row *row = lock_blame__row(b, i);
	char waiter[STACK_LABEL], holder[STACK_LABEL], last[STACK_LABEL];
	char did[LOCK_TEXT];
	bool is_chain = row->last != row->holder && key->last_code && !key->is_cycle;
	const char *which;

	if (stacks__frame(s, row->waiter))
		write_code(s, row->waiter, "`", waiter, sizeof(waiter));
	else
		snprintf(waiter, sizeof(waiter), "thread %u", lock_blame__number(b, row->waiting.tid));
	write_code(s, row->holder, "`", holder, sizeof(holder));
	write_code(s, row->last, "`", last, sizeof(last));
	write_did(b, a, s, i, did, sizeof(did));
	which = key->is_cycle ? ", which waited for the waiter in turn: a deadlock" : *did ? ", which " : "";
	if (!key->is_known)
		snprintf(buf, size, "%s waited %s for a lock whose holder is not known", waiter, share);
	else if (!row->holder)
		snprintf(buf, size, "%s waited %s for a lock that thread %u held%s%s", waiter, share,
			 lock_blame__number(b, row->held_by.tid), which, did);
	else
		snprintf(buf, size, "%s waited %s for a lock held by %s%s%s%s%s", waiter, share, holder,
			 is_chain ? ", which waited for one held by " : "", is_chain ? last : "", which,
			 key->is_cycle ? "" : did);
	return buf;
}

char *lock_text__left_out(u64 ns, char *buf, size_t size)
{
	snprintf(buf, size, "Too many waits for locks: those of %.3f s were left out.", (double)ns / 1e9);
	return buf;
}
