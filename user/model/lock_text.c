// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/lock_text.h"

#include "output/text.h"
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
	[ACTIVITY_STOPPED] = "was stopped by a signal",
	[ACTIVITY_TRACED] = "was stopped by a tracer",
	[ACTIVITY_FROZEN] = "was frozen",
};

/* Writes " (srv.py:12)" as far as it is known. */
static char *write_file(const struct stack_frame *f, char *buf, size_t size)
{
	const char *file = path__file_name(stack_frame__source(f));

	*buf = '\0';
	if (*file && f->line)
		snprintf(buf, size, " (%s:%u)", file, f->line);
	else if (*file)
		snprintf(buf, size, " (%s)", file);
	return buf;
}

char *lock_text__code(const struct stacks *s, u32 frame, char *buf, size_t size)
{
	const struct stack_frame *f = stacks__frame(s, frame);
	char file[STACK_LABEL];

	if (f && *f->name)
		snprintf(buf, size, "%s%s", f->name, write_file(f, file, sizeof(file)));
	else
		stacks__label(s, frame, buf, size);
	return buf;
}

char *lock_text__activity(const struct activity *a, u32 reason, char *buf, size_t size)
{
	const char *phrase = phrases[activity__cause(a, reason)], *name = activity__name(a, reason), *call;

	if (!phrase)
		phrase = "waited in %s";
	call = strstr(phrase, "%s");
	snprintf(buf, size, "%.*s%s", call ? (int)(call - phrase) : (int)strlen(phrase), phrase, call ? name : "");
	return buf;
}

/* An activity with less of the time does not characterize it; one with more needs no share. */
#define LEAST_PERCENT 33
#define ALL_PERCENT   90

char *lock_text__mostly(const struct activity *a, const struct lock_main_activity *did, char *buf, size_t size)
{
	int n = did->percent < ALL_PERCENT ? snprintf(buf, size, "for %.0f%% of that ", did->percent) : 0;

	if (did->percent < LEAST_PERCENT)
		*buf = '\0';
	else
		lock_text__activity(a, did->reason, buf + n, size - (size_t)n);
	return buf;
}

char *lock_text__sentence(const struct lock_blame *b, const struct activity *a, const struct stacks *s, u32 i,
			  const char *share, char *buf, size_t size)
{
	const struct lock_row_key *key = lock_blame__key(b, i);
	const struct lock_row *row = lock_blame__row(b, i);
	struct lock_main_activity most = lock_blame__main_activity(b, i);
	struct text_buffer t = { .buf = buf, .size = size };
	char code[STACK_LABEL], did[160];

	if (stacks__frame(s, row->waiter))
		text__add(&t, "%s", lock_text__code(s, row->waiter, code, sizeof(code)));
	else
		text__add(&t, "thread %u", lock_blame__number(b, row->waiting.tid));
	text__add(&t, " waited %s for a lock", share);
	if (!key->is_known)
		text__add(&t, " whose holder is not known");
	else if (row->holder)
		text__add(&t, " held by %s", lock_text__code(s, row->holder, code, sizeof(code)));
	else
		text__add(&t, " that thread %u held", lock_blame__number(b, row->held_by.tid));
	if (key->is_cycle)
		text__add(&t, ", which waited for the waiter in turn: a deadlock");
	else if (row->holder && row->last != row->holder && key->last_code)
		text__add(&t, ", which waited for one held by %s", lock_text__code(s, row->last, code, sizeof(code)));
	if (!key->is_known || key->is_cycle || !*lock_text__mostly(a, &most, did, sizeof(did)))
		return buf;
	text__add(&t, ", which %s", did);
	if (most.frame)
		text__add(&t, " in %s", lock_text__code(s, most.frame, code, sizeof(code)));
	return buf;
}

char *lock_text__left_out(u64 ns, char *buf, size_t size)
{
	snprintf(buf, size, "Too many waits for locks: those of %.3f s were left out.", (double)ns / 1e9);
	return buf;
}
