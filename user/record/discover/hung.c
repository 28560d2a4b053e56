// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files and processes about which the kernel does not answer in time: only they are skipped, and each is reported. Each
 * costs the time of everyone, so an account gets less time with each of them, and after three is not asked about until
 * a minute has passed. No debug files are searched for its files after the first.
 */
#include "record/discover/hung.h"

#include "record/discover/objects.h"
#include "record/parts.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

#define FORGIVE_NS 60000000000ULL

static struct hung_account *find_account(const struct session *s, struct hung *h, u32 uid)
{
	struct hung_account *a = h->accounts, *end = a + h->n_accounts;

	for (; a < end && a->uid != uid; a++)
		;
	if (a == end)
		return NULL;
	if (session__now(s) - a->last > FORGIVE_NS)
		a->n = 0;
	return a;
}

void hung__note(struct session *s, u32 uid)
{
	struct hung *h = &s->hung;
	struct hung_account *a = find_account(s, h, uid);

	if (!a && h->n_accounts == HUNG_MAX) {
		memmove(h->accounts, h->accounts + 1, sizeof(h->accounts) - sizeof(*a));
		h->n_accounts--;
	}
	if (!a) {
		a = &h->accounts[h->n_accounts++];
		*a = (struct hung_account){ .uid = uid };
	}
	a->n++;
	a->last = session__now(s);
}

bool hung__may_ask(struct session *s, u32 uid, bool for_debug_file)
{
	static const int limits[] = { 1000, 300, 300 }, roots[] = { OPENER_MS, OPENER_MS, OPENER_MS, 300 };
	const struct hung_account *a = find_account(s, &s->hung, uid);
	u32 n = a ? a->n : 0;

	if (uid && n >= (for_debug_file ? 1 : ARRAY_LEN(limits)))
		return false;
	attacher__limit(s->attacher, uid ? limits[n] : roots[n < ARRAY_LEN(roots) ? n : ARRAY_LEN(roots) - 1]);
	return true;
}

static bool is_listed(const struct hung *h, u32 pid)
{
	for (u32 i = 0; i < h->n; i++)
		if (h->pids[i] == pid)
			return true;
	return false;
}

bool process__is_hung(struct session *s, u32 pid)
{
	attacher__limit(s->attacher, OPENER_MS);
	return is_listed(&s->hung, pid) || (s->hung.n_accounts && !hung__may_ask(s, session__user(s, pid), false));
}

bool hung__are_processes(const struct hung *h)
{
	return h->n;
}

void hung__forget_ended(struct hung *h)
{
	u32 left = 0;

	for (u32 i = 0; i < h->n; i++)
		if (!session__has_ended(h->pids[i]))
			h->pids[left++] = h->pids[i];
	h->n = left;
}

int process__note_answer(struct session *s, u32 pid, int err)
{
	u32 account;

	/* the user wants to stop, or no more requests are made: a missing answer says nothing about the process */
	if (err != -ETIMEDOUT || session__is_stopping(s) || attacher__stuck(s->attacher) || is_listed(&s->hung, pid))
		return err;
	if (s->hung.n == HUNG_MAX)
		memmove(s->hung.pids, s->hung.pids + 1, --s->hung.n * sizeof(*s->hung.pids));
	s->hung.pids[s->hung.n++] = pid;
	account = session__user(s, pid);
	hung__note(s, account);
	s->not_attached++;
	session__warn_of(
		s, account,
		"process %u: not examined: the kernel did not answer in time what it runs or maps; it may wait for a "
		"file system whose server does not answer",
		pid);
	return err;
}

void object__refuse_hung(struct session *s, const struct object *o, u32 uid)
{
	if (session__is_stopping(s))
		return;
	hung__note(s, uid);
	s->not_attached++;
	session__warn_of(s, uid, "%s: not examined: its file system did not answer in time", o->path);
}

void attacher__note_stuck(struct session *s)
{
	if (s->hung.stuck_noted || !attacher__stuck(s->attacher))
		return;
	s->hung.stuck_noted = true;
	s->not_attached++;
	session__warn(
		s,
		"the process that attaches (sonde-attacher) waits in the kernel and does not answer: nothing more is "
		"attached, and its probes stay until the kernel lets it continue");
}
