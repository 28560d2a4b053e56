/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits what the programs of one user may cost sonde. Each new file that a process maps is opened and parsed, and
 * users can map as many new files as they like. So each user has a share of the time of one CPU, which accumulates
 * while it is unused, up to a limit. The time of all of sonde's processes counts (sandbox/usage.h). All users other
 * than root together have a share, too, because one person may have many user ids (subuid(5)).
 *
 * A mapping of a user with no time left is not examined: it is counted as a loss, and the process is scanned again
 * when there is time.
 */
#pragma once

#include "core/types.h"

struct session;
struct shares;

#define SHARES_UNKNOWN 0xffffffffu /* session__user() of a process that has ended; no user has this number */

struct shares *shares__new(void);
void shares__free(struct shares *sh);
/*
 * Returns whether a new file that this user's process maps may be examined now. If so, the time of sonde's processes is
 * charged to the user until the next call or shares__settle(). If not, the process is scanned again later, and with
 * `count` a loss is counted.
 */
bool shares__may(struct session *s, u32 uid, u32 pid, u64 time, bool count);
/* Counts a warning about the user's files and processes, and returns whether it may be printed. */
bool shares__may_warn(struct session *s, u32 uid);
/*
 * Returns the account of warnings about an open file: its owner's, if processes of this account were seen, or if sonde
 * found the file on disk. Otherwise that of the process that maps it, who may have made its owner (subuid(5)).
 */
u32 shares__owner(struct shares *sh, int fd, u32 mapper);
/* Returns the ns that this user has left; 0 or less: none. */
s64 shares__left(struct session *s, u32 uid);
/* Charges the time since the last shares__may() to that user; later time is not charged. */
void shares__settle(struct session *s);
/* Charges this time to the user, up to the limit of the share. */
void shares__charge(struct session *s, u32 uid, u64 ns);
/* Scans the process again when there is time: another file of the user is being examined now. */
void shares__later(struct session *s, u32 uid, u32 pid, u64 time);
/* Returns whether there are such processes. */
bool shares__are_waiting(const struct shares *sh);
/* A file was examined: for tests, in which each costs the same (SONDE_TEST=fixed-shares, growing-shares). */
void shares__examined(struct shares *sh);
/* Refills the shares, and scans the processes of users with time left again. */
void shares__tick(struct session *s, u64 now);
/* Writes losses that are counted and not written yet. */
void shares__report(struct session *s);
/* At the end of the recording: says how many warnings were not printed. */
void shares__warn_unprinted(struct session *s);
