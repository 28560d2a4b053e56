// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/doctor_examine.h"

#include "attach/library.h"
#include "elf/elf.h"
#include "record/family.h"
#include "sandbox/message.h"
#include "sandbox/sandbox.h"
#include "util/path.h"
#include "util/test_switch.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MS	   500
#define FAILED_MAX 6 /* failures of files that are not root's, after which no more of these are examined */
#define OTHERS_MS  9000 /* ms that these files may take */

struct note_taker {
	const struct embedded *embedded;
	struct sandbox child;
	struct stat st; /* the first file that the child parsed */
	u32 failed; /* files that are not root's */
	u64 others_ms; /* that these took */
};

/* A reply of the child; only the first n notes are sent. */
struct answer {
	u32 n;
	struct note notes[NOTES_MAX];
};

#define ANSWER_HEAD offsetof(struct answer, notes)

/* Notes how the family traces its library if this file is or contains it; returns false if not. */
static bool find_library(const struct embedded *embedded, const struct schema_family *f, struct elf *elf,
			 const char *path, struct note *n)
{
	const struct family_host *h = family_host__find(f->name);
	char text[80];

	PROGRAMS_EACH(p, &embedded->probes) {
		if (p->family != f || !*p->section.library)
			continue;
		if (elf ? library__match(elf, &embedded->probes, p->section.library) == LIBRARY_YES :
			  section__matches_library(&p->section, path)) {
			snprintf(n->runtime, sizeof(n->runtime), "%s", path__file_name(path));
			snprintf(n->how, sizeof(n->how), "its functions, by name");
			return true;
		}
		/* NVIDIA's static libraries have such symbols; record/attach/attach.c detects them in the same way. */
		snprintf(text, sizeof(text), "%.*s_static_", (int)strcspn(p->section.library, "."), p->section.library);
		if (elf && elf__names_hold(elf, text)) {
			snprintf(n->runtime, sizeof(n->runtime), "%s, linked in", p->section.library);
			snprintf(n->how, sizeof(n->how), "its functions, by the names inside");
			return true;
		}
	}
	if (!elf || !h || !h->hides_library || !elf__stripped(elf) || !h->hides_library(elf, text, sizeof(text)))
		return false;
	snprintf(n->runtime, sizeof(n->runtime), "a stripped copy, linked in");
	snprintf(n->how, sizeof(n->how), "not recorded without its debug file");
	return true;
}

/* Notes how the family traces the file: as a library by name, or as a runtime that its host code detects. */
static bool examine_family(const struct embedded *embedded, const struct schema_family *f, struct elf *elf,
			   const char *path, struct note *n)
{
	const struct family_host *h = family_host__find(f->name);

	*n = (struct note){ .family = f->id };
	if (find_library(embedded, f, elf, path, n))
		return true;
	/* Families with runtime__is_one only follow processes with a runtime, and probe nothing in the file. */
	if (!elf || !h || !h->is_runtime || h->is_runtime == runtime__is_one || !h->is_runtime(elf, path, false))
		return false;
	snprintf(n->runtime, sizeof(n->runtime), "%s", path__file_name(path));
	if (h->describe)
		return h->describe(elf, path, n->runtime, sizeof(n->runtime), n->how, sizeof(n->how));
	snprintf(n->how, sizeof(n->how), "probe sites in its code");
	return true;
}

static u32 examine(const struct embedded *embedded, struct elf *elf, const char *path, struct note *notes)
{
	const struct schema *schema = embedded->schema;
	u32 n = 0;

	for (u32 i = 0; i < schema->n_families && n < NOTES_MAX; i++)
		n += schema->families[i].id && examine_family(embedded, &schema->families[i], elf, path, &notes[n]);
	return n;
}

/* The child's main function: each request is a path and its open file, each reply a struct answer. */
static void serve(int sock, void *arg)
{
	static char path[PATH_MAX];
	static struct answer a;
	struct elf *elf;
	ssize_t n;
	int fd;

	while ((n = message__receive(sock, path, sizeof(path), &fd)) > 0 && fd >= 0 && !path[n - 1]) {
		if (test_switch__is_set("doctor-crash"))
			abort();
		if (elf__open(&elf, fd))
			elf = NULL;
		a.n = examine(arg, elf, path, a.notes);
		elf__close(elf);
		close(fd);
		if (message__send(sock, &a, ANSWER_HEAD + a.n * sizeof(*a.notes), -1))
			return;
	}
}

struct note_taker *note_taker__new(const struct embedded *embedded)
{
	struct note_taker *e = calloc(1, sizeof(*e));

	if (e) {
		e->embedded = embedded;
		e->child = SANDBOX_NONE;
	}
	return e;
}

static void end_child(struct note_taker *e)
{
	pid_t pid = e->child.pid;

	sandbox__end(&e->child);
	/* A child that waits for an unresponsive file system cannot end, and is left behind after this time. */
	for (u32 ms = 0; pid > 0 && ms < END_MS && !waitpid(pid, NULL, WNOHANG); ms++)
		usleep(1000);
	e->child = SANDBOX_NONE;
}

void note_taker__free(struct note_taker *e)
{
	if (!e)
		return;
	end_child(e);
	free(e);
}

/* May the files share a child? Only if exactly the same users can write both. */
static bool may_share(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_dev == b->st_dev && !(a->st_mode & S_IWOTH) && !(b->st_mode & S_IWOTH) &&
	       (!((a->st_mode | b->st_mode) & S_IWGRP) || a->st_gid == b->st_gid);
}

static bool is_sound(const struct note_taker *e, const struct answer *a, ssize_t size)
{
	if (size < (ssize_t)ANSWER_HEAD || a->n > NOTES_MAX || (size_t)size != ANSWER_HEAD + a->n * sizeof(*a->notes))
		return false;
	for (u32 i = 0; i < a->n; i++) {
		const struct note *n = &a->notes[i];

		if (n->family > UINT16_MAX || !schema__family_by_id(e->embedded->schema, n->family) ||
		    !memchr(n->runtime, 0, sizeof(n->runtime)) || !memchr(n->how, 0, sizeof(n->how)))
			return false;
	}
	return true;
}

static int ask_child(struct note_taker *e, int fd, const char *path, struct note *out)
{
	static struct answer a;
	struct message_wait wait = { .limit_ms = SANDBOX_WAIT_MS };
	ssize_t n = e->child.sock < 0 ? sandbox__fork(&e->child, serve, (void *)e->embedded) : 0;
	int sent;

	if (!n)
		n = message__send_now(e->child.sock, path, strlen(path) + 1, fd);
	if (!n)
		n = message__await(e->child.sock, &wait);
	if (!n) {
		n = message__receive(e->child.sock, &a, sizeof(a), &sent);
		if (sent >= 0)
			close(sent);
		n = n >= 0 && !is_sound(e, &a, n) ? -EPROTO : n;
	}
	if (n < 0) {
		end_child(e);
		return (int)n;
	}
	memcpy(out, a.notes, a.n * sizeof(*out));
	return (int)a.n;
}

int note_taker__ask(struct note_taker *e, int fd, const char *path, struct note *out)
{
	struct stat st;
	u64 begun;
	int n;

	if (fd < 0)
		return (int)examine(e->embedded, NULL, path, out);
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid && (e->failed >= FAILED_MAX || e->others_ms >= OTHERS_MS))
		return -EBUSY;
	begun = message__now();
	/* A child that replies before it got a request is compromised. */
	if (e->child.sock >= 0 && (!may_share(&e->st, &st) || message__pending(e->child.sock)))
		end_child(e);
	if (e->child.sock < 0)
		e->st = st;
	n = ask_child(e, fd, path, out);
	/* Earlier files may have used up the child's limit of CPU time, so a new child tries once more. */
	if (n < 0 && n != -ETIMEDOUT)
		n = ask_child(e, fd, path, out);
	if (st.st_uid) {
		e->failed += n < 0;
		e->others_ms += message__now() - begun;
	}
	return n;
}
