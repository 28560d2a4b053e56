/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What examine.c and examine_children.c share: the children of sonde-examiner, by who may write the files. */
#ifndef SONDE_RECORD_EXAMINE_PRIVATE_H
#define SONDE_RECORD_EXAMINE_PRIVATE_H

#include "record/examine.h"
#include "sandbox/sandbox.h"

#define CHILDREN_MAX 32 /* the least used one goes */
#define OWNERS_MAX   64 /* the least used one is forgotten */
#define SLOW_MAX     64 /* files of which no function could be named in time */

/* The time that a user's files take is that user's: others' are waited for no less long. */
struct owner {
	u64 uid;
	u64 used; /* when, in questions; 0: free */
	u32 late; /* files that could not be parsed in time */
	u32 answered; /* files that were, since the last of these */
};

/* What is known of a file by its inode. */
struct file_of {
	u64 dev, ino, uid, gid, size;
	u32 mode;
};

/*
 * The users that could have written the files that share a child: their owner, and their group if it may write
 * them. A file that all users may write has an inode of its own here.
 */
struct child_key {
	u64 dev, ino, uid, gid, group; /* group: 1: it may write them, 0: gid is 0 */
	u64 names; /* 1: it is asked for functions, which may take long */
};

struct child {
	struct child_key key;
	struct sandbox sandbox; /* sock -1: none */
	u64 used; /* when, in questions */
	u64 busy; /* since when, ms, it is at a question about a function that is not waited for; 0: it is not */
	u64 number; /* of the file of that question */
};

struct examiner {
	struct forkserver *server;
	struct child children[CHILDREN_MAX];
	u64 questions;
	struct owner owners[OWNERS_MAX];
	struct answer answer;
	u64 slow[SLOW_MAX]; /* numbers of files */
	u32 n_slow;
};

/* The child for such files; one is forked if there is none. NULL: it can't be. */
struct child *examiner__child(struct session *s, const struct file_of *f, u32 op);
/* Could no function of the file with this number be named in time? */
bool examiner__is_slow(const struct examiner *e, u64 number);
void child__end(struct child *c);
/* The user of the child's files pays for the time since then (ms of message__now) that it took. */
void child__charge(struct session *s, const struct child *c, u64 since);
/*
 * The child did not answer a question that came at `begun` in time. Functions are asked for again later (-EBUSY): it may have
 * large tables to make. -ETIMEDOUT: the recording ends.
 */
int child__leave(struct session *s, struct child *c, u64 number, u64 begun);
/*
 * A child that was left at a question. 0: it has answered, with what nothing waits for any more, but it has the file's tables now.
 * -EBUSY: it has not. -EPIPE: it has ended, or was ended, as it took too long.
 */
int child__look_after(struct session *s, struct child *c);

#endif
