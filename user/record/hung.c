// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files and processes about which the kernel does not answer in time: only they are skipped, and each is reported. */
#include "record/objects.h"

#include <string.h>

bool session__is_stopping(const struct session *s)
{
	return s->args->stop && *s->args->stop;
}

bool process__is_hung(const struct session *s, u32 pid)
{
	for (u32 i = 0; i < s->hung.n; i++)
		if (s->hung.pids[i] == pid)
			return true;
	return false;
}

void process__forget_hung(struct session *s)
{
	u32 left = 0;

	for (u32 i = 0; i < s->hung.n; i++)
		if (!session__has_ended(s->hung.pids[i]))
			s->hung.pids[left++] = s->hung.pids[i];
	s->hung.n = left;
}

void process__set_hung(struct session *s, u32 pid)
{
	/* the user wants to stop, or no more requests are made: a missing answer says nothing about the process */
	if (session__is_stopping(s) || attacher__stuck(s->attacher) || process__is_hung(s, pid))
		return;
	if (s->hung.n == HUNG_MAX)
		memmove(s->hung.pids, s->hung.pids + 1, --s->hung.n * sizeof(*s->hung.pids));
	s->hung.pids[s->hung.n++] = pid;
	s->counts.not_attached++;
	session__warn(
		s,
		"process %u: not examined: the kernel did not answer in time what it runs or maps; it may wait for a "
		"file system whose server does not answer",
		pid);
}

void object__refuse_hung(struct session *s, const struct object *o)
{
	if (session__is_stopping(s))
		return;
	s->counts.not_attached++;
	session__warn(s, "%s: not examined: its file system did not answer in time", o->path);
}

void attacher__note_stuck(struct session *s)
{
	if (s->hung.stuck_noted || !attacher__stuck(s->attacher))
		return;
	s->hung.stuck_noted = true;
	s->counts.not_attached++;
	session__warn(
		s,
		"the process that attaches (sonde-attacher) waits in the kernel and does not answer: nothing more is "
		"attached, and its probes stay until the kernel lets it continue");
}
