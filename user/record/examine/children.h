/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by examine.c and children.c: the children of sonde-examiner, by the users who may write the files. */
#pragma once

#include "process/process.h"
#include "record/examine/examine.h"
#include "sandbox/message.h"
#include "sandbox/sandbox.h"

#define CHILDREN_MAX 32 /* the least recently used one is replaced */
#define OWNERS_MAX   64 /* the least recently used one is replaced */
#define SLOW_MAX     64 /* files with a function that could not be named in time */

/* Timeouts count against the owner of the files: the limits for other users' files stay the same. */
struct owner {
	u64 uid;
	u64 used; /* number of the request that last used it; 0: free */
	u32 late; /* files that were not parsed in time */
	u32 answered; /* files that were parsed in time, since the last timeout */
};

/* What a file's inode shows. */
struct file_of {
	u64 dev, ino, uid, gid, size;
	u64 stored; /* bytes on the disk, of which a sparse file has few */
	u32 mode;
};

/*
 * The users who could have written the files that share a child: the owner, and the group if it may write them. For a
 * file that all users may write, the key contains its inode.
 */
struct child_key {
	u64 dev, ino, uid, gid, group; /* group: 1: the group may write them; 0: then gid is 0, too */
	u64 names; /* 1: it looks up functions, which may take long */
};

struct child {
	struct child_key key;
	struct sandbox sandbox; /* sock -1: no child */
	u64 used; /* number of the request that last used it */
	u64 busy; /* ms: start of a function lookup that is no longer awaited; 0: there is none */
	u64 number; /* number of the file of that lookup */
	struct pending_file *pending; /* a file whose answer is not awaited; NULL: none */
};

/* A file whose examination takes long: the worker continues with the files of other accounts meanwhile. */
struct pending_file {
	struct object *object;
	struct mapping m; /* one of the object, with its path */
	struct examination x; /* what was received so far */
	u64 size; /* bytes */
	u64 begun; /* ms of message__now */
	int limit_ms;
	u32 uid; /* of the file's owner */
	u32 account; /* who is charged */
};

struct examiner {
	struct forkserver *server;
	struct child children[CHILDREN_MAX];
	u64 requests;
	struct owner owners[OWNERS_MAX];
	struct answer answer;
	u64 slow[SLOW_MAX]; /* numbers of files */
	u32 n_slow;
};

/* Returns the child for such files, which is forked if there is none. NULL: failed. */
struct child *examiner__child(struct session *s, const struct file_of *f, u32 op);
/*
 * Receives a part of the answer about an object's file (or, NULL, another request's). Returns 0, 1 if it was the last
 * part, or negative errno.
 */
int examine__take_part(struct session *s, struct child *c, struct object *o, const struct mapping *m, u64 size,
		       struct examination *x, struct message_wait *wait);
/* Notes how an examination ended, and ends a child that takes no more requests. */
void examine__end(struct session *s, struct child *c, u64 uid, u32 op, const struct examination *x, int err);
/* Reports that an object's file could not be examined. */
void examine__note_failure(struct session *s, struct object *o, int err);
/* pending.c: leaves a file to its child. x: taken over. Returns -EINPROGRESS, or -ENOMEM. */
int pending_file__leave(struct session *s, struct child *c, const struct pending_file *p);
/* Its child was ended for another reason. */
void pending_file__abandoned(struct session *s, struct child *c);
/* Returns whether a file of the account is being examined. */
bool pending_file__is_of(const struct examiner *e, u32 account);
/* Returns whether the file with this number has a function that could not be named in time. */
bool examiner__is_slow(const struct examiner *e, u64 number);
void child__end(struct child *c);
/* Charges the child's time since `since` (ms of message__now) to the user of its files. */
void child__charge(struct session *s, const struct child *c, u64 since);
/*
 * Called when the child has not answered a request of time `begun` in time. Function lookups are repeated later
 * (-EBUSY), because the child may have large tables to build. -ETIMEDOUT: the recording ends.
 */
int child__leave(struct session *s, struct child *c, u64 number, u64 begun);
/*
 * Receives the answer of a lookup that is no longer awaited. 0: the child answered; the answer is dropped, but the
 * file's tables are cached now. -EBUSY: not yet. -EPIPE: it has ended, or was killed because it took too long.
 */
int child__collect_late(struct session *s, struct child *c);
