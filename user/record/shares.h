/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of one user may cost sonde. Each new file that a process maps is opened and parsed, and users map as many new
 * files as they like. So each user has a share of the time of one CPU for it, which adds up while it is not used, to a limit. The
 * time of all of sonde's processes counts (sandbox/usage.h). All users but root together have a share too, as one person may have
 * many user numbers (subuid(5)).
 *
 * A mapping of a user who has nothing left is not examined: it is counted as a loss, and the process is scanned again
 * once there is something left.
 */
#ifndef SONDE_RECORD_SHARES_H
#define SONDE_RECORD_SHARES_H

#include "core/types.h"

struct session;
struct shares;

#define SHARES_UNKNOWN 0xffffffffu /* the user of a process that has ended; no user has this number */

struct shares *shares__new(void);
void shares__free(struct shares *sh);
/* The effective user of a process, SHARES_UNKNOWN if it has ended. */
u32 shares__user(struct session *s, u32 pid);
/*
 * May a new file that this user's process maps be examined now? What sonde's processes take from here on is then the user's, until
 * the next call or shares__settle(). If not, the process is scanned again later; count: and a loss is counted.
 */
bool shares__may(struct session *s, u32 uid, u32 pid, u64 time, bool count);
/* What this user has left, ns; 0 or less: nothing. */
s64 shares__left(struct session *s, u32 uid);
/* What was taken since the last shares__may() was the user's; what comes is no user's. */
void shares__settle(struct session *s);
/* The user owes so much more, ns, up to the limit of the share. */
void shares__charge(struct session *s, u32 uid, u64 ns);
/* A file was examined: for tests, in which each costs the same (SONDE_TEST=fixed-shares, growing-shares). */
void shares__examined(struct session *s);
/* Adds to the shares and scans processes again whose users have something left. */
void shares__tick(struct session *s, u64 now);
/* Writes what is counted and not written yet. */
void shares__report(struct session *s);

#endif
