// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The child that examines a file for the attacher. A child answers only for one file, so a file that compromises it
 * can only lie about itself. The child is reused until a request for another file: a file is attached by several
 * programs in succession.
 */
#include "attach/verifier.h"

#include "attach/attacher.h"
#include "sandbox/message.h"
#include "sandbox/sandbox.h"
#include "site/verify_site.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 10000

struct question {
	u32 n;
	u32 returns;
	u64 offsets[ATTACHER_SITES_MAX];
};

#define QUESTION_HEAD offsetof(struct question, offsets)

struct verifier {
	int file; /* the file that the child examines; -1: none */
	bool sent; /* the file was sent to the child */
	struct sandbox child;
	struct stat st; /* status of the file when the child started */
	struct question question;
};

struct verifier *verifier__new(void)
{
	struct verifier *v = calloc(1, sizeof(*v));

	if (v) {
		v->file = -1;
		v->child = SANDBOX_NONE;
	}
	return v;
}

static void end_child(struct verifier *v)
{
	sandbox__end(&v->child);
	if (v->file >= 0)
		close(v->file);
	v->file = -1;
	v->sent = false;
}

void verifier__free(struct verifier *v)
{
	if (!v)
		return;
	end_child(v);
	free(v);
}

void verifier__ended(struct verifier *v, pid_t pid)
{
	sandbox__ended(&v->child, pid);
}

/* The child's main function; the file is passed with the first request. */
static void examine(int sock, void *arg)
{
	static u8 verdicts[ATTACHER_SITES_MAX];
	static struct question q;
	struct site_checker *c = NULL;
	ssize_t n;
	int fd;

	while ((n = message__receive(sock, &q, sizeof(q), &fd)) >= (ssize_t)QUESTION_HEAD) {
		if (fd >= 0 && !c)
			c = site_checker__new(fd);
		if (!c || q.n > ATTACHER_SITES_MAX || (size_t)n != QUESTION_HEAD + q.n * sizeof(u64))
			return;
		site_checker__check(c, q.offsets, q.n, q.returns, verdicts);
		if (message__send(sock, verdicts, q.n, -1))
			return;
	}
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Starts a child for this file if there is none. */
static int prepare(struct verifier *v, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	/* a child that answers before it is asked was compromised, and one that has ended can't answer */
	if (v->file >= 0 && is_same(&st, &v->st) && !message__pending(v->child.sock))
		return 0;
	end_child(v);
	v->file = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (v->file < 0)
		return -errno;
	v->st = st;
	return sandbox__fork(&v->child, examine, NULL);
}

static bool ask(struct verifier *v, u8 *verdicts)
{
	struct message_wait wait = { .limit_ms = WAIT_MS };
	struct question *q = &v->question;
	ssize_t n;
	int fd;

	n = message__send_now(v->child.sock, q, QUESTION_HEAD + q->n * sizeof(u64), v->sent ? -1 : v->file);
	v->sent = true;
	if (n || message__await(v->child.sock, &wait))
		return false;
	n = message__receive(v->child.sock, verdicts, q->n, &fd);
	/* a compromised child may send descriptors */
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)q->n;
}

bool verifier__check(struct verifier *v, int fd, const u64 *offsets, u32 n, bool returns, u8 *verdicts, int *file)
{
	bool all = true;

	if (n > ATTACHER_SITES_MAX)
		return false;
	v->question.n = n;
	v->question.returns = returns;
	memcpy(v->question.offsets, offsets, n * sizeof(u64));
	memset(verdicts, SITE_UNREADABLE, n);
	if (prepare(v, fd) || !ask(v, verdicts)) {
		end_child(v);
		memset(verdicts, SITE_UNREADABLE, n);
	}
	for (u32 i = 0; i < n; i++)
		all &= verdicts[i] == SITE_OK;
	*file = v->file;
	return all && v->file >= 0;
}
