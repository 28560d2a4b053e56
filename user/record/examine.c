// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The worker's side: children of sonde-examiner by the owner of the files, and the consequences if one does not
 * answer.
 */
#include "record/examine.h"
#include "record/family.h"
#include "record/objects.h"
#include "record/shares.h"

#include "sandbox/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CHILDREN_MAX 32 /* the least used one goes */
#define WAIT_MS	     8000 /* libtorch_cuda takes 1 s or so on a busy machine */
#define PATIENT	     3 /* files given up, after which one is waited for less long */
#define IMPATIENT_MS 1500
#define FORGIVEN     64 /* files parsed in time, after which one that was given up counts no more */
#define STOPPING_MS  200
#define OWNERS_MAX   64 /* the least used one is forgotten */
/*
 * Functions are asked for while the rings are read, and nothing else reads them meanwhile. Tables of the largest files take
 * seconds on a busy machine: then the child goes on with them while the recording does, and is asked again later.
 */
#define NAME_MS	     500
#define ROOT_NAME_MS 2000 /* of a file that root alone may write */
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

/* In sonde-examiner: events of other processes are none of its business. */
static void forget(void *session)
{
	rings__forget(((struct session *)session)->rings);
}

int examiner__start(struct session *s)
{
	struct examiner *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		e->children[i].sandbox = SANDBOX_NONE;
	e->server = forkserver__start(examine__serve, s, forget);
	if (!e->server) {
		free(e);
		return -errno;
	}
	s->examiner = e;
	return 0;
}

void examiner__free(struct examiner *e)
{
	if (!e)
		return;
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		if (e->children[i].sandbox.sock >= 0)
			sandbox__end(&e->children[i].sandbox);
	forkserver__free(e->server);
	free(e);
}

/* Without asking a server of files, which may not answer. */
static int look_at(int fd, struct file_of *f)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return -errno;
	*f = (struct file_of){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.uid = st.stx_uid,
		.gid = st.stx_gid,
		.size = st.stx_size,
		.mode = st.stx_mode,
	};
	return 0;
}

static struct child_key key_of(const struct file_of *f, u32 op)
{
	bool group = f->mode & S_IWGRP;

	return (struct child_key){
		.dev = f->dev,
		.ino = f->mode & S_IWOTH ? f->ino : 0,
		.uid = f->uid,
		.gid = group ? f->gid : 0,
		.group = group,
		.names = op != FILE_FIND,
	};
}

static struct owner *owner_of(struct examiner *e, u64 uid)
{
	struct owner *least = &e->owners[0];

	for (u32 i = 0; i < OWNERS_MAX; i++) {
		struct owner *o = &e->owners[i];

		if (o->used && o->uid == uid) {
			o->used = ++e->questions;
			return o;
		}
		if (o->used < least->used)
			least = o;
	}
	*least = (struct owner){ .uid = uid, .used = ++e->questions };
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
	return o->late < PATIENT ? WAIT_MS : IMPATIENT_MS;
}

static void note_result(struct owner *o, u32 op, int err)
{
	if (op != FILE_FIND)
		return;
	if (err == -ETIMEDOUT) {
		o->late++;
		o->answered = 0;
	} else if (!err && o->late && ++o->answered == FORGIVEN) {
		o->late--;
		o->answered = 0;
	}
}

/* The child for such files; one is forked if there is none. NULL: it can't be. */
static struct child *child_of(struct examiner *e, const struct file_of *f, u32 op)
{
	struct child_key key = key_of(f, op);
	struct child *c = &e->children[0];

	for (u32 i = 0; i < CHILDREN_MAX; i++) {
		struct child *other = &e->children[i];

		if (other->sandbox.sock >= 0 && !memcmp(&other->key, &key, sizeof(key))) {
			c = other;
			/* one that answers before it is asked was taken over, and one that has ended answers nothing */
			if (!c->busy && message__pending(c->sandbox.sock))
				break;
			c->used = ++e->questions;
			return c;
		}
		if (other->used < c->used)
			c = other;
	}
	if (c->sandbox.sock >= 0)
		sandbox__end(&c->sandbox);
	c->busy = 0;
	if (forkserver__fork(e->server, &c->sandbox))
		return NULL;
	c->key = key;
	c->used = ++e->questions;
	return c;
}

static void end_child(struct child *c)
{
	sandbox__end(&c->sandbox);
	c->used = c->busy = 0;
}

static bool is_slow(const struct examiner *e, u64 number)
{
	for (u32 i = 0; number && i < SLOW_MAX; i++)
		if (e->slow[i] == number)
			return true;
	return false;
}

/* The child has answered, or is given up: its user pays for the time. */
static void end_busy(struct session *s, struct child *c)
{
	if (c->key.uid)
		shares__charge(s, (u32)c->key.uid, (message__now() - c->busy) * 1000000ULL);
	c->busy = 0;
}

/*
 * A child that was left at a question. 0: it has answered, with what nothing waits for any more, but it has the file's tables now.
 * -EBUSY: it has not. -EPIPE: it has ended, or was ended, as it took too long.
 */
static int look_after(struct session *s, struct child *c)
{
	struct answer *a = &s->examiner->answer;
	bool left = !c->key.uid || shares__left(s, (u32)c->key.uid) > 0;
	ssize_t n;
	int fd;

	while (message__pending(c->sandbox.sock)) {
		n = message__receive(c->sandbox.sock, a, sizeof(*a), &fd);
		if (fd >= 0)
			close(fd);
		if (n < (ssize_t)ANSWER_HEAD)
			break;
		if (a->head.kind != ANSWER_END)
			continue;
		end_busy(s, c);
		if (a->end.last)
			end_child(c);
		return a->end.last ? -EPIPE : 0;
	}
	if (left && message__now() - c->busy < WAIT_MS && !message__pending(c->sandbox.sock))
		return -EBUSY;
	s->examiner->slow[s->examiner->n_slow++ % SLOW_MAX] = c->number;
	end_busy(s, c);
	end_child(c);
	return -EPIPE;
}

/* The child did not answer in time. Functions are asked for again later: it may have large tables to make. */
static int leave_busy(struct session *s, struct child *c, const struct file_question *q)
{
	if (session__is_stopping(s))
		return -ETIMEDOUT;
	c->busy = message__now() - NAME_MS;
	c->number = q->number;
	return -EBUSY;
}

static void on_idle(void *session)
{
	drain__keep(session);
}

/* The debug file that the child asks for: the opener decides whether it may be had. */
static int give_debug(struct session *s, struct child *c, const struct object *o, struct examination *x,
		      const struct answer *a, size_t n)
{
	struct debug_reply reply;
	int fd, err;

	if (!o || x->op != FILE_FIND || n < ANSWER_HEAD + 2 || n > ANSWER_HEAD + ANSWER_TEXT_MAX ||
	    a->text[n - ANSWER_HEAD - 1] || x->n_debug++ == FILE_DEBUG_MAX)
		return -EPROTO;
	fd = object__open_debug(s, o, a->head.kind == ANSWER_SERVER, a->head.n, a->text);
	reply.result = fd < 0 ? fd : 0;
	err = message__send_now(c->sandbox.sock, &reply, sizeof(reply), fd);
	if (fd >= 0)
		close(fd);
	/* an honest one waits for it */
	return err == -EAGAIN ? -EPROTO : err;
}

/* The answer in its parts; o, m: the object and a mapping of it, NULL: none is asked about. */
static int take_answer(struct session *s, struct child *c, const struct object *o, const struct mapping *m, u64 size,
		       int limit_ms, struct examination *x)
{
	struct message_wait wait = {
		.limit_ms = limit_ms,
		.stopping_ms = STOPPING_MS,
		.stop = s->args->stop,
		.idle = on_idle,
		.arg = s,
	};
	struct answer *a = &s->examiner->answer;
	int err, fd;
	ssize_t n;

	for (;;) {
		err = message__await(c->sandbox.sock, &wait);
		if (err)
			return err;
		n = message__receive(c->sandbox.sock, a, sizeof(*a), &fd);
		/* a child that was taken over may send what it has */
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			return -EPIPE;
		if ((size_t)n >= ANSWER_HEAD && (a->head.kind == ANSWER_DEBUG || a->head.kind == ANSWER_SERVER)) {
			u64 since = message__now();

			err = give_debug(s, c, o, x, a, n);
			message__exclude(&wait, since);
		} else {
			err = examination__take(x, s, o, a, n, size);
		}
		/* a CPython's come first: its processes are known before it is probed */
		if (!err && m && a->head.kind == ANSWER_FACTS)
			python__examined(s, &x->facts, m);
		if (err)
			return err < 0 ? err : 0;
	}
}

/* 0: the child has answered. -EPIPE: it has ended. */
static int ask(struct session *s, int fd, const struct object *o, const struct mapping *m,
	       const struct file_question *q, struct examination *x)
{
	size_t size = offsetof(struct file_question, path) + strlen(q->path) + 1;
	struct owner *owner;
	struct file_of f = {};
	struct child *c;
	int err;

	memset(x, 0, sizeof(*x));
	x->op = q->op;
	err = look_at(fd, &f);
	if (err)
		return err;
	owner = owner_of(s->examiner, f.uid);
	if (q->op != FILE_FIND && is_slow(s->examiner, q->number))
		return -ETIMEDOUT;
	if (q->op != FILE_FIND && !is_roots(&f) && shares__left(s, (u32)f.uid) <= 0)
		return -EBUSY;
	c = child_of(s->examiner, &f, q->op);
	if (c && c->busy) {
		err = look_after(s, c);
		if (err == -EBUSY || is_slow(s->examiner, q->number))
			return err == -EBUSY ? err : -ETIMEDOUT;
		c = child_of(s->examiner, &f, q->op);
	}
	if (!c)
		return -EAGAIN;
	err = message__send_now(c->sandbox.sock, q, size, fd);
	if (err) {
		/* it has ended since its last answer: that says nothing of this file */
		end_child(c);
		c = child_of(s->examiner, &f, q->op);
		err = c ? message__send_now(c->sandbox.sock, q, size, fd) : -EAGAIN;
	}
	if (!c)
		return err;
	if (!err)
		err = take_answer(s, c, o, m, f.size, limit_of(owner, &f, q->op), x);
	if (err == -ETIMEDOUT && q->op != FILE_FIND)
		err = leave_busy(s, c, q);
	if ((err && err != -EBUSY) || x->end.last)
		end_child(c);
	if (!session__is_stopping(s))
		note_result(owner, q->op, err);
	return err;
}

static void set_hint(struct session *s, const struct family_host *h, void *arg)
{
	const struct schema_family *f = schema__family(s->schema, h->name);
	struct file_question *q = arg;

	if (f && h->hint && *h->hint)
		q->hints |= FAMILY_BIT(f->id);
}

static void set_path(struct file_question *q, const char *path)
{
	size_t len = strlen(path);

	/* its end says what it is called */
	snprintf(q->path, sizeof(q->path), "%s", len < sizeof(q->path) ? path : path + len - sizeof(q->path) + 1);
}

const char *examine__why(int err)
{
	return err == -EPIPE ?
		       "the process that parsed it crashed, or took more memory or time of the CPU than it may" :
	       err == -ETIMEDOUT ? "it could not be parsed in time" :
	       err == -EPROTO	 ? "the process that parsed it answered what makes no sense" :
	       err == -EAGAIN	 ? "the process that is to parse it (sonde-examiner) can't be started" :
				   strerror(-err);
}

static void note_failure(struct session *s, const struct object *o, int err)
{
	char text[256];

	if (err == -ETIMEDOUT && session__is_stopping(s))
		return;
	snprintf(text, sizeof(text), "%s: what programs do with this file is not traced", examine__why(err));
	session__gave_up(s, o->path, text);
}

int examine__object(struct session *s, struct object *o, const struct mapping *m, struct examination *x)
{
	static struct file_question q;
	int err;

	q = (struct file_question){
		.kind = FILE_QUESTION,
		.op = FILE_FIND,
		.families = o->families,
		.is_preattached = o->is_preattached,
	};
	set_path(&q, o->path);
	family_host__each(s, set_hint, &q);
	err = ask(s, o->fd, o, m, &q, x);
	if (err)
		note_failure(s, o, err);
	else if (*x->note && !o->debug_sought)
		session__warn(s, "%s: %s", o->path, x->note);
	o->debug_sought |= *x->note;
	return err ? err : x->end.result;
}

int session__symbol(struct session *s, int fd, const char *path, u64 offset, char *name, size_t len, u64 *begins)
{
	static struct file_question q;
	struct examination x;
	int err;

	q = (struct file_question){ .kind = FILE_QUESTION, .op = FILE_SYMBOL, .offset = offset };
	set_path(&q, path);
	err = ask(s, fd, NULL, NULL, &q, &x);
	snprintf(name, len, "%s", err ? "" : x.symbol.name);
	*begins = x.symbol.offset;
	examination__free(&x);
	return err ? err : x.end.result;
}

int examine__code_at(struct session *s, const struct code_question *c, struct found_code *out, struct found_end *end)
{
	static struct file_question q;
	struct examination x;
	int err;

	q = (struct file_question){ .kind = FILE_QUESTION, .op = FILE_CODE, .offset = c->offset, .number = c->number };
	set_path(&q, c->path);
	err = ask(s, c->fd, NULL, NULL, &q, &x);
	*out = x.code;
	*end = x.end;
	examination__free(&x);
	return err ? err : x.end.result;
}

int session__start_dwarf(struct session *s, struct dwarf_job *job, const struct mapping *m, const char *type,
			 const struct dwarf_member *members, u32 n)
{
	const struct object *o = objects__find(s, m);

	return o && o->fd >= 0 ? dwarf_job__start(job, s->examiner->server, o->fd, type, members, n) : -ENOENT;
}
