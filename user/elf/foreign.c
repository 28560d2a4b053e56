// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf/foreign_private.h"

#include "sandbox/message.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAVE_MS 50
#define END_MS	 500

#define TIMEOUTS_MAX 2

struct foreign {
	struct sandbox child;
	const u64 *until;
	u32 last_number;
	struct foreign_question question;
	struct foreign_answer answer;
};

struct foreign *foreign__new(const u64 *until)
{
	struct foreign *f = calloc(1, sizeof(*f));

	if (f) {
		f->child = SANDBOX_NONE;
		f->until = until;
	}
	return f;
}

static bool has_ended(pid_t pid, u32 within_ms)
{
	for (u32 ms = 0; ms <= within_ms; ms++) {
		if (waitpid(pid, NULL, WNOHANG))
			return true;
		usleep(1000);
	}
	return false;
}

/*
 * Closes the child's socket, which ends the child, and kills it if it does not end. A child in a read from a file
 * system that does not answer can't end: it is left behind.
 */
static void end_child(struct foreign *f)
{
	pid_t pid = f->child.pid;

	if (pid > 0)
		sandbox__ended(&f->child, pid);
	sandbox__end(&f->child);
	if (pid > 0 && !has_ended(pid, LEAVE_MS) && !kill(pid, SIGKILL))
		has_ended(pid, END_MS);
}

/* Kills the child at once, because a thread of the target may be stopped meanwhile. */
static void kill_child(struct foreign *f)
{
	pid_t pid = f->child.pid;

	sandbox__end(&f->child);
	if (pid > 0)
		has_ended(pid, f->until && *f->until ? LEAVE_MS : END_MS);
}

/* ms that an answer may take; 0: the time is up. */
static int time_left(const struct foreign *f)
{
	u64 until = f->until ? *f->until : 0, now = message__now();

	if (!until)
		return SANDBOX_WAIT_MS;
	if (now >= until)
		return 0;
	return until - now < SANDBOX_WAIT_MS ? (int)(until - now) : SANDBOX_WAIT_MS;
}

void foreign__free(struct foreign *f)
{
	if (f)
		end_child(f);
	free(f);
}

/* Sends the request in `f`. Returns the bytes of the answer after its header, or negative errno without a child. */
static ssize_t request_once(struct foreign *f, int file_fd)
{
	struct message_wait wait = { .limit_ms = time_left(f) };
	struct foreign_question *q = &f->question;
	ssize_t n;
	int fd;

	/* a child that answers before it is asked was compromised */
	if (f->child.sock >= 0 && message__pending(f->child.sock))
		kill_child(f);
	n = f->child.sock < 0 ? sandbox__fork(&f->child, foreign__serve, NULL) : 0;
	if (!n)
		n = message__send_now(f->child.sock, q, FOREIGN_QUESTION_HEAD + q->size, file_fd);
	if (!n)
		n = message__await(f->child.sock, &wait);
	if (!n) {
		n = message__receive(f->child.sock, &f->answer, sizeof(f->answer), &fd);
		/* a compromised child may send descriptors */
		if (fd >= 0)
			close(fd);
		n = n < (ssize_t)FOREIGN_ANSWER_HEAD || f->answer.result > 0 ? -EPROTO : n - FOREIGN_ANSWER_HEAD;
	}
	if (n < 0)
		kill_child(f);
	return n;
}

/*
 * Returns the bytes of the answer after its header, or negative errno. A file whose requests end two children, or
 * time out twice, is not asked about again. A request that timed out is not repeated here, as the caller's time may
 * be up.
 */
static ssize_t ask(struct foreign_file *file, u32 op, u64 value)
{
	struct foreign *f = file->child;
	struct foreign_question *q = &f->question;
	ssize_t n = -ETIMEDOUT;

	q->op = op;
	q->number = file->number;
	q->value = value;
	if (file->fd < 0) {
		n = file->error;
	} else if (time_left(f)) {
		n = request_once(f, file->fd);
		if (n < 0 && n != -ETIMEDOUT && time_left(f))
			n = request_once(f, file->fd);
		if (n < 0 && (n != -ETIMEDOUT || ++file->timeouts == TIMEOUTS_MAX)) {
			file->fd = -1;
			file->error = (int)n;
		}
	}
	q->n = q->size = 0;
	return n;
}

static int set_names(struct foreign *f, const char *const *names, u32 n)
{
	struct foreign_question *q = &f->question;

	q->n = q->size = 0;
	for (u32 i = 0; i < n; i++) {
		size_t len = strlen(names[i]) + 1;

		if (len > sizeof(q->text) - q->size)
			return -ENAMETOOLONG;
		memcpy(q->text + q->size, names[i], len);
		q->size += len;
	}
	q->n = n;
	return 0;
}

int foreign_file__open(struct foreign_file *file, struct foreign *f, int fd)
{
	ssize_t n;

	*file = (struct foreign_file){ .child = f, .fd = fd, .number = ++f->last_number };
	n = ask(file, FOREIGN_OPEN, 0);
	if (n < 0)
		return (int)n;
	if (!f->answer.result && (f->answer.n > FOREIGN_TEXTS || n != (ssize_t)(f->answer.n * sizeof(*file->texts))))
		f->answer.result = -EPROTO;
	if (f->answer.result) {
		file->fd = -1;
		file->error = f->answer.result;
		return f->answer.result;
	}
	file->n_texts = f->answer.n;
	memcpy(file->texts, f->answer.texts, n);
	return 0;
}

int foreign_file__find_symbols(struct foreign_file *file, const char *const *names, u32 n, struct elf_symbol *out)
{
	const struct foreign_symbol *found = file->child->answer.symbols;
	int err = n > FOREIGN_SYMBOLS ? -E2BIG : set_names(file->child, names, n);
	ssize_t size = err ? err : ask(file, FOREIGN_FIND, 0);

	memset(out, 0, n * sizeof(*out));
	if (size < 0)
		return (int)size;
	if (file->child->answer.result)
		return file->child->answer.result;
	if (size != (ssize_t)(n * sizeof(*found)))
		return -EPROTO;
	for (u32 i = 0; i < n; i++)
		if (found[i].found)
			out[i] = (struct elf_symbol){
				.name = names[i],
				.addr = found[i].addr,
				.size = found[i].size,
				.offset = found[i].offset,
				.dynamic = found[i].dynamic,
				.default_version = found[i].default_version,
				.function = found[i].function,
			};
	return 0;
}

int foreign_file__unwind(struct foreign_file *file, u64 addr, struct elf_unwind *out)
{
	ssize_t n = ask(file, FOREIGN_UNWIND, addr);
	const u8 *bytes = (const u8 *)&file->child->answer.unwind;

	if (n < 0)
		return (int)n;
	if (file->child->answer.result)
		return file->child->answer.result;
	/* the flags come first: a value other than 0 or 1 is not a valid bool */
	if (n != sizeof(*out) || bytes[0] > 1 || bytes[1] > 1 || bytes[2] > 1)
		return -EPROTO;
	*out = file->child->answer.unwind;
	return 0;
}

bool foreign_file__is_exported(struct foreign_file *file, u64 addr)
{
	return ask(file, FOREIGN_EXPORTED, addr) == 0 && !file->child->answer.result && file->child->answer.n;
}

bool foreign_file__defines_version(struct foreign_file *file, const char *name)
{
	return !set_names(file->child, &name, 1) && ask(file, FOREIGN_VERSION, 0) == 0 && !file->child->answer.result &&
	       file->child->answer.n;
}

/* The text at *at, which advances behind it; NULL: no text ends there. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at;
	size_t len = strnlen(text, end - text);

	if (text + len >= end)
		return NULL;
	*at = text + len + 1;
	return text;
}

int foreign_file__needed(struct foreign_file *file, struct foreign_needed *out)
{
	ssize_t n = ask(file, FOREIGN_NEEDED, 0);
	const char *at = out->text;

	if (n < 0)
		return (int)n;
	if (file->child->answer.result)
		return file->child->answer.result;
	memcpy(out->text, file->child->answer.text, n);
	out->rpath = next_text(&at, out->text + n);
	out->runpath = out->rpath ? next_text(&at, out->text + n) : NULL;
	if (!out->runpath)
		return -EPROTO;
	out->rpath = *out->rpath ? out->rpath : NULL;
	out->runpath = *out->runpath ? out->runpath : NULL;
	out->names = at;
	out->n = 0;
	while (out->n < file->child->answer.n && next_text(&at, out->text + n))
		out->n++;
	return out->n == file->child->answer.n ? 0 : -EPROTO;
}
