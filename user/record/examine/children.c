// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The worker's side: manages the children of sonde-examiner, one for each owner of files, and collects answers that
 * come late.
 */
#include "record/examine/children.h"

#include "record/discover/shares.h"
#include "record/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The most children of a user other than root, counted separately for function lookups and for other requests. A
 * further one replaces another.
 */
#define USERS_CHILDREN 8
#define PARTS_MAX      8 /* messages that are read at once; the answer to a function lookup has two */

/* Runs in sonde-examiner, which must not be able to read events of other processes. */
static void forget_rings(void *session)
{
	drain__forget(&((struct session *)session)->drain);
}

int examiner__start(struct session *s)
{
	struct examiner *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		e->children[i].sandbox = SANDBOX_NONE;
	e->server = forkserver__start(examine__serve, s, forget_rings);
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
	for (u32 i = 0; i < CHILDREN_MAX; i++) {
		if (e->children[i].sandbox.sock >= 0)
			sandbox__end(&e->children[i].sandbox);
		if (e->children[i].pending)
			examination__free(&e->children[i].pending->x);
		free(e->children[i].pending);
	}
	forkserver__free(e->server);
	free(e);
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

void child__end(struct child *c)
{
	sandbox__end(&c->sandbox);
	c->used = c->busy = 0;
}

void examiner__lower(struct examiner *e)
{
	for (u32 i = 0; i < CHILDREN_MAX; i++)
		if (e->children[i].sandbox.sock >= 0 && !e->children[i].busy && !e->children[i].pending)
			child__end(&e->children[i]);
	forkserver__lower(e->server);
}

void child__charge(struct session *s, const struct child *c, u64 since)
{
	u64 ms = message__now() - since;

	/* no child runs longer: the rest of the time the worker did other work */
	if (c->key.uid)
		shares__charge(s, (u32)c->key.uid, (ms < SANDBOX_WAIT_MS ? ms : SANDBOX_WAIT_MS) * 1000000ULL);
}

/* Called when the child has answered or was abandoned. */
static void end_busy(struct session *s, struct child *c)
{
	child__charge(s, c, c->busy);
	c->busy = 0;
}

static void abandon_child(struct session *s, struct child *c)
{
	struct examiner *e = s->examiner;

	if (c->pending)
		pending_file__abandoned(s, c);
	if (c->busy && c->number)
		e->slow[e->n_slow++ % SLOW_MAX] = c->number;
	if (c->busy)
		end_busy(s, c);
	child__end(c);
}

/* Returns the child to be replaced first: a free slot, then one that is not busy, then the least recently used one. */
static struct child *first_of(struct child *a, struct child *b)
{
	u32 of_a, of_b;

	if (!a)
		return b;
	of_a = a->sandbox.sock < 0 ? 0 : a->busy || a->pending ? 2 : 1;
	of_b = b->sandbox.sock < 0 ? 0 : b->busy || b->pending ? 2 : 1;
	if (of_a != of_b)
		return of_a < of_b ? a : b;
	return a->used <= b->used ? a : b;
}

/* Returns a slot for a child with this key: a user with many children can't replace those of other users. */
static struct child *room_for(struct examiner *e, const struct child_key *key)
{
	struct child *first = NULL, *own = NULL;
	u32 n_own = 0;

	for (u32 i = 0; i < CHILDREN_MAX; i++) {
		struct child *c = &e->children[i];

		first = first_of(first, c);
		if (c->sandbox.sock < 0 || c->key.uid != key->uid || c->key.names != key->names)
			continue;
		own = first_of(own, c);
		n_own++;
	}
	return key->uid && n_own >= USERS_CHILDREN ? own : first;
}

struct child *examiner__child(struct session *s, const struct file_of *f, u32 op)
{
	struct examiner *e = s->examiner;
	struct child_key key = key_of(f, op);
	struct child *c = NULL;

	for (u32 i = 0; i < CHILDREN_MAX && !c; i++)
		if (e->children[i].sandbox.sock >= 0 && !memcmp(&e->children[i].key, &key, sizeof(key)))
			c = &e->children[i];
	/*
	 * a pending message means that the child has ended, or that it was compromised, as it has no request to answer
	 */
	if (c && (c->busy || c->pending || !message__pending(c->sandbox.sock))) {
		c->used = ++e->requests;
		return c;
	}
	if (!c)
		c = room_for(e, &key);
	if (c->sandbox.sock >= 0)
		abandon_child(s, c);
	if (forkserver__fork(e->server, &c->sandbox))
		return NULL;
	c->key = key;
	c->used = ++e->requests;
	return c;
}

bool examiner__is_slow(const struct examiner *e, u64 number)
{
	for (u32 i = 0; number && i < SLOW_MAX; i++)
		if (e->slow[i] == number)
			return true;
	return false;
}

int child__collect_late(struct session *s, struct child *c)
{
	struct answer *a = &s->examiner->answer;
	bool left = !c->key.uid || shares__left(s, (u32)c->key.uid) > 0;
	ssize_t n;
	int fd;

	/* a compromised child may send without end */
	for (u32 i = 0; i < PARTS_MAX && message__pending(c->sandbox.sock); i++) {
		n = message__receive(c->sandbox.sock, a, sizeof(*a), &fd);
		if (fd >= 0)
			close(fd);
		if (n < (ssize_t)ANSWER_HEAD)
			break;
		if (a->head.kind != ANSWER_END)
			continue;
		end_busy(s, c);
		if (a->end.last)
			child__end(c);
		return a->end.last ? -EPIPE : 0;
	}
	if (left && message__now() - c->busy < SANDBOX_WAIT_MS && !message__pending(c->sandbox.sock))
		return -EBUSY;
	abandon_child(s, c);
	return -EPIPE;
}

int child__leave(struct session *s, struct child *c, u64 number, u64 begun)
{
	if (session__is_stopping(s))
		return -ETIMEDOUT;
	c->busy = begun;
	c->number = number;
	return -EBUSY;
}

u32 examiner__tick(struct session *s)
{
	u32 n = 0;

	examiner__resume(s);
	for (u32 i = 0; s->examiner && i < CHILDREN_MAX; i++) {
		struct child *c = &s->examiner->children[i];

		if (c->busy && child__collect_late(s, c) == -EBUSY)
			n++;
	}
	return n;
}
