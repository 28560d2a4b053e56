// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The worker's side: sends requests to the children of sonde-examiner (children.c), and handles those that do
 * not answer.
 */
#include "record/examine/examine.h"

#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/examine/children.h"
#include "record/parts.h"
#include "record/stacks/python.h"
#include "sandbox/message.h"
#include "util/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SHORTEN_AFTER 3 /* number of abandoned files after which the time limit of a file is shorter */
#define IMPATIENT_MS  1500
#define FORGIVE_AFTER 64 /* number of files parsed in time after which one abandoned file is forgiven */
#define STOPPING_MS   200
/*
 * A libtorch, of 430 MB, takes 1 s of CPU time for its operators, and far longer on a machine with many busy threads.
 */
#define LARGE_FILE    (128ULL << 20) /* bytes on the disk */
#define LARGE_WAIT_MS (3 * SANDBOX_WAIT_MS)
/*
 * How long the worker waits for a file that users other than root may write, before it continues with other files: if
 * a command waits for its start, and otherwise.
 */
#define COMMAND_MS 1500
#define OTHERS_MS  100
/*
 * Time limits for looking up functions, during which records are copied but not handled. The tables of the largest
 * files take seconds on a busy machine: the child then continues with them in parallel, and is asked again later.
 */
#define NAME_MS	     500
#define ROOT_NAME_MS 2000 /* of a file that only root may write */

/* Reads the status without asking a remote file system, which may not answer. */
static int stat_file(int fd, struct file_of *f)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return -errno;
	*f = (struct file_of){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.uid = account__owner(st.stx_uid),
		.gid = st.stx_gid,
		.size = st.stx_size,
		.stored = st.stx_blocks * 512,
		.mode = st.stx_mode,
	};
	return 0;
}

static struct owner *owner_of(struct examiner *e, u64 uid)
{
	struct owner *least = &e->owners[0];

	for (u32 i = 0; i < OWNERS_MAX; i++) {
		struct owner *o = &e->owners[i];

		if (o->used && o->uid == uid) {
			o->used = ++e->requests;
			return o;
		}
		if (o->used < least->used)
			least = o;
	}
	*least = (struct owner){ .uid = uid, .used = ++e->requests };
	return least;
}

static bool is_roots(const struct file_of *f)
{
	return !f->uid && !(f->mode & (S_IWGRP | S_IWOTH));
}

static int limit_of(const struct owner *o, const struct file_of *f, u32 op)
{
	if (op != FILE_FIND)
		return is_roots(f) ? ROOT_NAME_MS : NAME_MS;
	if (o->late >= SHORTEN_AFTER)
		return IMPATIENT_MS;
	return f->stored >= LARGE_FILE ? LARGE_WAIT_MS : SANDBOX_WAIT_MS;
}

static void note_result(struct owner *o, u32 op, int err)
{
	if (op != FILE_FIND)
		return;
	if (err == -ETIMEDOUT) {
		o->late++;
		o->answered = 0;
	} else if (!err && o->late && ++o->answered == FORGIVE_AFTER) {
		o->late--;
		o->answered = 0;
	}
}

/* Opens a debug file at an absolute path in the root of the object's process or of this one. */
static int open_debug(struct session *s, const struct object *o, bool own_root, const char *path)
{
	u32 account;
	int fd;

	if (*path != '/' || (own_root && !o->pid))
		return -EINVAL;
	account = o->pid ? session__user(s, o->pid) : 0;
	if (!hung__may_ask(s, account, true))
		return -EBUSY;
	fd = attacher__open_debug(s->attacher, own_root ? o->pid : 0, path, o->fd);
	if (fd == -ETIMEDOUT)
		hung__note(s, account);
	return fd;
}

/* Sends the debug file that the child requests; the opener decides whether it may be used. */
static int send_debug(struct session *s, struct child *c, const struct object *o, struct examination *x,
		      const struct answer *a, size_t n)
{
	struct debug_reply reply;
	int fd, err;

	if (!o || x->op != FILE_FIND || n < ANSWER_HEAD + 2 || n > ANSWER_HEAD + ANSWER_TEXT_MAX ||
	    a->text[n - ANSWER_HEAD - 1] || x->n_debug++ == FILE_DEBUG_MAX)
		return -EPROTO;
	fd = open_debug(s, o, a->head.n, a->text);
	reply.result = fd < 0 ? fd : 0;
	err = message__send_now(c->sandbox.sock, &reply, sizeof(reply), fd);
	if (fd >= 0)
		close(fd);
	/* an honest child waits for the debug file */
	return err == -EAGAIN ? -EPROTO : err;
}

int examine__take_part(struct session *s, struct child *c, struct object *o, const struct mapping *m, u64 size,
		       struct examination *x, struct message_wait *wait)
{
	struct answer *a = &s->examiner->answer;
	int err, fd;
	ssize_t n = message__receive(c->sandbox.sock, a, sizeof(*a), &fd);

	/* a compromised child may send descriptors */
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -EPIPE;
	if ((size_t)n >= ANSWER_HEAD && a->head.kind == ANSWER_DEBUG) {
		u64 since = message__now();

		err = send_debug(s, c, o, x, a, n);
		message__exclude(wait, since);
	} else {
		err = examination__take(x, s, o, a, n, size);
	}
	/* the facts of a CPython come first, so that its processes are known before it is probed */
	if (!err && m && a->head.kind == ANSWER_FACTS)
		python__examined(s, &x->facts, m);
	return err;
}

/* Receives the parts of an answer; o, m: the object and a mapping of it, NULL: the request is not about an object. */
static int take_answer(struct session *s, struct child *c, struct object *o, const struct mapping *m, u64 size,
		       int limit_ms, struct examination *x)
{
	struct message_wait wait = {
		.limit_ms = limit_ms,
		.stopping_ms = STOPPING_MS,
		.stop = s->args->stop,
		.idle = drain__on_idle,
		.arg = s,
	};
	int err;

	do {
		err = message__await(c->sandbox.sock, &wait) ?: examine__take_part(s, c, o, m, size, x, &wait);
	} while (!err);
	return err < 0 ? err : 0;
}

void examine__end(struct session *s, struct child *c, u64 uid, u32 op, const struct examination *x, int err)
{
	if ((err && err != -EBUSY) || x->end.last)
		child__end(c);
	if (!session__is_stopping(s))
		note_result(owner_of(s->examiner, uid), op, err);
}

/* Returns how long the worker waits for an answer, at most `limit`. */
static int patience_of(const struct session *s, const struct object *o, const struct mapping *m,
		       const struct file_of *f, u32 op, int limit)
{
	if (op != FILE_FIND || is_roots(f) || (!o->is_preattached && targets__have(s, m->pid)))
		return limit;
	return s->args->command_pid && !s->time.started ? COMMAND_MS : OTHERS_MS;
}

/* Returns 0 if the child has answered, -EPIPE if it has ended. */
static int send_question(struct session *s, int fd, struct object *o, const struct mapping *m,
			 const struct file_question *q, struct examination *x)
{
	size_t size = offsetof(struct file_question, path) + strlen(q->path) + 1;
	bool finds = q->op == FILE_FIND;
	struct file_of f = {};
	struct child *c;
	u32 account;
	int err, limit;
	u64 begun;

	memset(x, 0, sizeof(*x));
	x->op = q->op;
	err = stat_file(fd, &f);
	if (err)
		return err;
	/* a file that no process maps yet is charged to its owner */
	account = finds && !o->is_preattached ? m->uid : (u32)f.uid;
	if (finds && pending_file__is_of(s->examiner, account))
		return -EBUSY;
	if (!finds && examiner__is_slow(s->examiner, q->number))
		return -ETIMEDOUT;
	if (!finds && !is_roots(&f) && shares__left(s, (u32)f.uid) <= 0)
		return -EBUSY;
	c = examiner__child(s, &f, q->op);
	if (c && c->pending)
		return -EBUSY;
	if (c && c->busy) {
		err = child__collect_late(s, c);
		if (err == -EBUSY || examiner__is_slow(s->examiner, q->number))
			return err == -EBUSY ? err : -ETIMEDOUT;
		c = examiner__child(s, &f, q->op);
	}
	if (!c)
		return -EAGAIN;
	begun = message__now();
	err = message__send_now(c->sandbox.sock, q, size, fd);
	if (err) {
		/* the child has ended since its last answer, which says nothing about this file */
		child__end(c);
		c = examiner__child(s, &f, q->op);
		err = c ? message__send_now(c->sandbox.sock, q, size, fd) : -EAGAIN;
	}
	if (!c)
		return err;
	limit = limit_of(owner_of(s->examiner, f.uid), &f, q->op);
	err = err ?: take_answer(s, c, o, m, f.size, patience_of(s, o, m, &f, q->op, limit), x);
	if (finds && err == -ETIMEDOUT && message__now() - begun < (u64)limit && !session__is_stopping(s))
		return pending_file__leave(s, c,
					   &(struct pending_file){
						   .object = o,
						   .m = *m,
						   .x = *x,
						   .size = f.size,
						   .begun = begun,
						   .limit_ms = limit,
						   .uid = (u32)f.uid,
						   .account = account,
					   });
	if (!finds && err == -ETIMEDOUT)
		err = child__leave(s, c, q->number, begun);
	/* the time of a child that is still busy is charged when it ends */
	if (!finds && !c->busy)
		child__charge(s, c, begun);
	examine__end(s, c, f.uid, q->op, x, err);
	return err;
}

static void set_path(struct file_question *q, const char *path)
{
	size_t len = strlen(path);

	/* the end of a path has the name */
	snprintf(q->path, sizeof(q->path), "%s", len < sizeof(q->path) ? path : path + len - sizeof(q->path) + 1);
}

const char *examine__why(int err)
{
	return err == -EPIPE ?
		       "the process that parsed it crashed, or took more memory or time of the CPU than it may" :
	       err == -ETIMEDOUT ? "it could not be parsed in time" :
	       err == -EPROTO	 ? "the process that parsed it gave an invalid answer" :
	       err == -EAGAIN	 ? "the process that is to parse it (sonde-examiner) can't be started" :
				   strerror(-err);
}

void examine__note_failure(struct session *s, struct object *o, int err)
{
	char text[256];

	if (err == -ETIMEDOUT && session__is_stopping(s))
		return;
	snprintf(text, sizeof(text), "%s: what programs do with this file is not traced", examine__why(err));
	object__leave_out(s, o, text);
}

int examine__object(struct session *s, struct object *o, const struct mapping *m, u64 hints, struct examination *x)
{
	static struct file_question q;
	int err;

	q = (struct file_question){
		.kind = FILE_QUESTION,
		.op = FILE_FIND,
		.families = o->families | o->rejected,
		.hints = hints,
		.is_preattached = o->is_preattached,
	};
	set_path(&q, o->path);
	err = send_question(s, o->fd, o, m, &q, x);
	if (err == -EINPROGRESS || err == -EBUSY)
		return err;
	if (err)
		examine__note_failure(s, o, err);
	return err ? err : x->end.result;
}

int session__symbol(struct session *s, int fd, const char *path, u64 offset, char *name, size_t len, u64 *begins)
{
	static struct file_question q;
	struct examination x;
	int err;

	q = (struct file_question){ .kind = FILE_QUESTION, .op = FILE_SYMBOL, .offset = offset };
	set_path(&q, path);
	err = send_question(s, fd, NULL, NULL, &q, &x);
	snprintf(name, len, "%s", err ? "" : x.symbol.name);
	*begins = x.symbol.offset;
	examination__free(&x);
	return err ? err : x.end.result;
}

int examine__code_at(struct session *s, const struct code_request *c, struct found_code *out, struct found_end *end)
{
	static struct file_question q;
	struct examination x;
	int err;

	q = (struct file_question){
		.kind = FILE_QUESTION,
		.op = c->is_perf_map ? FILE_PERF_MAP : FILE_CODE,
		.offset = c->offset,
		.number = c->number,
	};
	set_path(&q, c->path);
	err = send_question(s, c->fd, NULL, NULL, &q, &x);
	*out = x.code;
	*end = x.end;
	examination__free(&x);
	return err ? err : x.end.result;
}

int session__start_dwarf(struct session *s, struct dwarf_job *job, const struct mapping *m, const char *type,
			 const struct dwarf_member *members, u32 n)
{
	struct object *o = objects__find(s->objects, m);

	return o && o->fd >= 0 ? dwarf_job__start(job, s->examiner->server, o->fd, type, members, n) : -ENOENT;
}
