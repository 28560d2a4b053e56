// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/discover/shares.h"

#include "record/discover/objects.h"
#include "record/drain/losses.h"
#include "record/parts.h"
#include "sandbox/usage.h"
#include "util/account.h"
#include "util/recent.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS	      1000000000LL
#define USERS_MAX     64
#define PENDING_MAX   64 /* processes of a user that are to be scanned again; further ones are dropped */
#define SETTLE_NS     5000000 /* reading the clocks of all processes takes some us */
#define LINES_MAX     16 /* warnings about the files and processes of a user */
#define RESCAN_PART   20 /* scans are repeated once this part of the limit is available */
#define EXAMINATIONS  10 /* for tests: a user's limit */
#define PROCESSES_MAX 4096 /* processes whose users are cached, in one generation */
#define ASK_EVERY     1000000000ULL /* ns: a process may change its user, and its pid may be reused */
/* Numbers that no user has. */
#define OTHERS 0xfffffffeu /* all users other than root together */
#define EXCESS 0xfffffffdu /* the users who have no share of their own, together */

/*
 * A share of one CPU, and the limit up to which unused time accumulates. The largest CUDA libraries take a second
 * each.
 */
struct rate {
	u32 percent;
	s64 limit; /* ns */
};

static const struct rate root_rate = { 20, 20 * NS }, others_rate = { 15, 15 * NS }, user_rate = { 5, 5 * NS };

struct pending {
	u32 pid;
	u64 since; /* ns */
};

struct share {
	u32 uid;
	bool is_used; /* false: the entry is free */
	bool is_reported; /* a line about it was printed */
	u32 n_warnings; /* about its files and processes, printed or not */
	bool is_scanned; /* its processes are being scanned again */
	struct rate rate;
	s64 budget_ns; /* ns; below 0: overdrawn */
	u64 refilled; /* time of the last refill, ns */
	struct pending pending[PENDING_MAX];
	u32 n_pending;
	u64 skipped, first; /* mappings that were not examined and not reported yet; ns */
	u32 pid; /* their process; 0: several */
};

struct shares {
	struct share others, users[USERS_MAX + 1]; /* the first is root's, the last that of EXCESS */
	struct share *payer; /* NULL: no user */
	u64 charged_until; /* usage__total_ns() up to which all is charged */
	u64 settled; /* time of the last charge, ns */
	bool fixed, growing, unlimited; /* for tests */
	struct recent users_of; /* pid: struct user_of */
};

struct user_of {
	u32 uid;
	u64 read_at; /* time of the last read, ns */
};

static struct share full_share(u32 uid, struct rate rate, u64 now)
{
	return (struct share){ .uid = uid, .is_used = true, .rate = rate, .budget_ns = rate.limit, .refilled = now };
}

struct shares *shares__new(void)
{
	struct shares *sh = calloc(1, sizeof(*sh));

	if (!sh)
		return NULL;
	recent__init(&sh->users_of, sizeof(u32), sizeof(struct user_of), PROCESSES_MAX);
	sh->others = full_share(OTHERS, others_rate, 0);
	sh->users[0] = full_share(0, root_rate, 0);
	sh->users[USERS_MAX] = full_share(EXCESS, user_rate, 0);
	sh->growing = session__test_switch("growing-shares");
	sh->fixed = sh->growing || session__test_switch("fixed-shares");
	sh->unlimited = session__test_switch("unlimited-shares");
	return sh;
}

void shares__free(struct shares *sh)
{
	if (sh)
		recent__free(&sh->users_of);
	free(sh);
}

static void refill_share(const struct shares *sh, struct share *a, u64 now)
{
	u64 add = now > a->refilled ? (now - a->refilled) / 100 * a->rate.percent : 0;

	if (sh->fixed)
		add = 0;
	a->refilled = now;
	if (sh->unlimited || add > (u64)a->rate.limit || a->budget_ns + (s64)add > a->rate.limit)
		a->budget_ns = a->rate.limit;
	else
		a->budget_ns += (s64)add;
}

/* Files mapped before tracing was live are not examined yet, so they are missing in the traced time, too. */
static void write_skipped(struct session *s, struct share *a)
{
	if (a->skipped)
		losses__add_of(s, a->pid, 0, LOSS_SHARE, a->skipped, a->first, session__now(s), 0);
	a->skipped = 0;
}

/* The user's processes, for a line that is printed. Returns buf. */
static const char *name_user(const struct share *a, char *buf, size_t size)
{
	if (a->uid == SHARES_UNKNOWN)
		snprintf(buf, size, "processes that end at once");
	else if (a->uid == EXCESS)
		snprintf(buf, size, "processes of more than %d users", USERS_MAX);
	else
		snprintf(buf, size, "processes of user %u", a->uid);
	return buf;
}

static void count_unprinted(struct session *s, struct share *a)
{
	char who[64];

	if (a->n_warnings > LINES_MAX)
		session__warn(s, "%u more warnings about files and %s are not printed", a->n_warnings - LINES_MAX,
			      name_user(a, who, sizeof(who)));
	a->n_warnings = 0;
}

/* An entry with pending work must not be replaced. */
static bool is_needed(const struct shares *sh, const struct share *a)
{
	return a == sh->payer || a->is_scanned || a->n_pending;
}

/* NULL: no process of this user was seen, or its entry was replaced. */
static struct share *find_share(struct shares *sh, u32 uid)
{
	for (u32 i = 0; i < USERS_MAX; i++)
		if (sh->users[i].is_used && sh->users[i].uid == uid)
			return &sh->users[i];
	return NULL;
}

/*
 * The entry with the most time left is replaced, as its user loses least by it. If none can be replaced, the user
 * shares that of EXCESS.
 */
static struct share *share_of(struct session *s, u32 uid)
{
	struct shares *sh = s->shares;
	struct share *found = find_share(sh, uid), *most = NULL, *unused = NULL;
	u64 now = session__now(s);

	for (u32 i = 0; !found && i < USERS_MAX; i++) {
		struct share *a = &sh->users[i];

		if (!a->is_used)
			unused = a;
		else if (a->uid && !is_needed(sh, a) && (!most || a->budget_ns > most->budget_ns))
			most = a;
	}
	if (!found && !unused && !most)
		found = &sh->users[USERS_MAX];
	if (found) {
		refill_share(sh, found, now);
		return found;
	}
	if (!unused) {
		unused = most;
		write_skipped(s, unused);
		count_unprinted(s, unused);
	}
	*unused = full_share(uid, user_rate, now);
	return unused;
}

static s64 left_of(struct session *s, const struct share *a)
{
	struct share *others = &s->shares->others;

	refill_share(s->shares, others, session__now(s));
	return !a->uid || a->budget_ns < others->budget_ns ? a->budget_ns : others->budget_ns;
}

bool shares__may_warn(struct session *s, u32 uid)
{
	return share_of(s, uid)->n_warnings++ < LINES_MAX;
}

u32 session__user(struct session *s, u32 pid)
{
	struct user_of *u = recent__get(&s->shares->users_of, &pid);
	u64 now = session__now(s);
	u32 uid;

	if (u && u->read_at && now - u->read_at < ASK_EVERY)
		return u->uid;
	if (attacher__user(s->attacher, pid, &uid))
		uid = SHARES_UNKNOWN;
	if (u)
		*u = (struct user_of){ uid, now };
	return uid;
}

u32 shares__owner(struct shares *sh, int fd, u32 mapper)
{
	struct stat st;
	u32 owner;

	if (fstat(fd, &st))
		return mapper;
	owner = account__owner(st.st_uid);
	/* sonde itself maps what it finds on disk */
	return mapper == geteuid() || find_share(sh, owner) ? owner : mapper;
}

s64 shares__left(struct session *s, u32 uid)
{
	return s->shares ? left_of(s, share_of(s, uid)) : INT64_MAX;
}

/* The debt is limited, so that the share is available again after a bounded time. */
static void take_from(struct share *a, u64 ns)
{
	s64 owed_max = -a->rate.limit;

	if (ns > (u64)(2 * a->rate.limit) || a->budget_ns - (s64)ns < owed_max)
		a->budget_ns = owed_max;
	else
		a->budget_ns -= (s64)ns;
}

static void charge_share(struct shares *sh, struct share *a, u64 ns)
{
	take_from(a, ns);
	if (a->uid)
		take_from(&sh->others, ns);
}

void shares__charge(struct session *s, u32 uid, u64 ns)
{
	if (s->shares && !s->shares->fixed)
		charge_share(s->shares, share_of(s, uid), ns);
}

/*
 * Charges the time since the last call. A total may be too low, because processes that end are counted a moment
 * later; charges are never reversed.
 */
static void charge_payer(struct session *s)
{
	struct shares *sh = s->shares;
	u64 total = usage__total_ns();

	if (sh->payer && total > sh->charged_until && !sh->fixed)
		charge_share(sh, sh->payer, total - sh->charged_until);
	if (total > sh->charged_until)
		sh->charged_until = total;
	sh->settled = session__now(s);
}

void shares__settle(struct session *s)
{
	if (!s->shares->payer)
		return;
	charge_payer(s);
	s->shares->payer = NULL;
}

void shares__examined(struct shares *sh)
{
	struct share *payer = sh->payer;

	if (payer && payer->uid && sh->fixed)
		payer->budget_ns -= payer->rate.limit / EXAMINATIONS;
}

/* Prints a line, once for each user. */
static void report_user(struct session *s, struct share *a)
{
	char who[64];

	if (a->is_reported)
		return;
	a->is_reported = true;
	s->not_attached++;
	session__warn(
		s,
		"%s map new files with code faster than sonde examines them with their share of %u%% of one CPU. These files "
		"are examined later, or not at all if no process maps them any more by then. Calls into libraries that only "
		"such processes map are missing until then. Other users' files are not affected",
		name_user(a, who, sizeof(who)), a->rate.percent);
}

static void add_pending(struct share *a, u32 pid, u64 time)
{
	for (u32 i = 0; i < a->n_pending; i++)
		if (a->pending[i].pid == pid)
			return;
	if (a->n_pending < PENDING_MAX)
		a->pending[a->n_pending++] = (struct pending){ .pid = pid, .since = time };
}

void shares__later(struct session *s, u32 uid, u32 pid, u64 time)
{
	if (pid)
		add_pending(share_of(s, uid), pid, time);
}

bool shares__are_waiting(const struct shares *sh)
{
	for (u32 i = 0; i <= USERS_MAX; i++)
		if (sh->users[i].is_used && sh->users[i].n_pending && sh->users[i].budget_ns > 0)
			return true;
	return false;
}

static void skip_mapping(struct session *s, struct share *a, u32 pid, u64 time, bool count)
{
	add_pending(a, pid, time);
	if (!count)
		return;
	report_user(s, a);
	if (!a->skipped++) {
		a->first = time;
		a->pid = pid;
	}
	a->pid = a->pid == pid ? pid : 0;
}

bool shares__may(struct session *s, u32 uid, u32 pid, u64 time, bool count)
{
	struct shares *sh = s->shares;
	struct share *a = share_of(s, uid);

	if (a != sh->payer || session__now(s) - sh->settled > SETTLE_NS)
		charge_payer(s);
	sh->payer = NULL;
	if (left_of(s, a) <= 0) {
		skip_mapping(s, a, pid, time, count);
		return false;
	}
	sh->payer = a;
	return true;
}

/* Scans the processes with new files, as long as there is time left. */
static void scan_pending(struct session *s, struct share *a)
{
	struct pending list[PENDING_MAX];
	u32 n = a->n_pending, i;

	memcpy(list, a->pending, n * sizeof(*list));
	a->n_pending = 0;
	/* files found by the scan may belong to other users, whose entries must not replace this one */
	a->is_scanned = true;
	for (i = 0; i < n && left_of(s, a) > 0; i++) {
		objects__scan_late(s, list[i].pid, list[i].since);
		shares__settle(s);
	}
	a->is_scanned = false;
	for (; i < n; i++)
		add_pending(a, list[i].pid, list[i].since);
}

void shares__tick(struct session *s, u64 now)
{
	struct shares *sh = s->shares;

	for (u32 i = 0; i <= USERS_MAX; i++) {
		struct share *a = &sh->users[i];

		if (!a->is_used || !a->n_pending)
			continue;
		refill_share(sh, a, now);
		if (sh->growing)
			a->budget_ns += a->rate.limit / EXAMINATIONS;
		if (sh->growing || a->budget_ns > a->rate.limit / RESCAN_PART)
			scan_pending(s, a);
	}
}

void shares__report(struct session *s)
{
	for (u32 i = 0; s->shares && i <= USERS_MAX; i++)
		write_skipped(s, &s->shares->users[i]);
}

void shares__warn_unprinted(struct session *s)
{
	for (u32 i = 0; i <= USERS_MAX; i++)
		count_unprinted(s, &s->shares->users[i]);
}
