// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs in a child of sonde-examiner (record/examine/examine.h). */
#include "record/examine/examine.h"
#include "sandbox/message.h"
#include "util/test_switch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* s of CPU time after which a child takes no more requests: its resource limit is meant for a single file */
#define CPU_MAX 3

int answer__send(int sock, u32 kind, u32 n, const void *data, size_t len)
{
	static struct answer a;

	if (len > sizeof(a) - ANSWER_HEAD)
		return -EMSGSIZE;
	a.head = (struct answer_head){ .kind = kind, .n = n };
	memcpy((char *)&a + ANSWER_HEAD, data, len);
	return message__send(sock, &a, ANSWER_HEAD + len, -1);
}

/*
 * SONDE_TEST=examine-crash:GLOB, examine-loop:GLOB and examine-lie:GLOB simulate files that the parsers can't handle;
 * examine-slow:GLOB a file whose tables take a second of CPU time, once.
 */
static void misbehave(int sock, const struct file_question *q)
{
	static u32 slow;
	struct timespec t;
	const struct found_site nowhere = { .program = 0xfffffff, .offset = ~0ULL };

	if (test_switch__matches("examine-crash", q->path))
		abort();
	while (test_switch__matches("examine-loop", q->path))
		;
	if (test_switch__matches("examine-slow", q->path) && !slow++)
		while (!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) && !t.tv_sec)
			;
	if (test_switch__matches("examine-lie", q->path))
		answer__send(sock, ANSWER_SITES, 1, &nowhere, sizeof(nowhere));
}

struct search {
	u64 offset;
	struct elf_symbol best;
};

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct search *s = arg;

	if (!sym->function || sym->offset > s->offset || s->offset - sym->offset >= sym->size)
		return 0;
	/* of several symbols, use the one with the nearest start */
	if (!s->best.name || sym->offset > s->best.offset)
		s->best = *sym;
	return 0;
}

static int find_symbol(struct elf *elf, int sock, const struct file_question *q)
{
	struct search search = { .offset = q->offset };
	struct found_symbol out = {};

	elf__each_symbol(elf, on_symbol, &search);
	if (search.best.name) {
		strncpy(out.name, search.best.name, sizeof(out.name) - 1);
		out.offset = search.best.offset;
	}
	return answer__send(sock, ANSWER_SYMBOL, 0, &out, sizeof(out));
}

static int answer_question(struct session *s, int sock, const struct file_question *q, int fd, struct found_end *end)
{
	static struct file_facts facts;
	bool over_budget = false;
	struct elf *elf;
	int err;

	if (q->op == FILE_CODE || q->op == FILE_PERF_MAP) {
		err = examine__code(sock, q, fd, &over_budget);
		end->over_budget = over_budget;
		return err;
	}
	err = elf__open(&elf, fd);
	if (err)
		return err;
	memset(&facts, 0, sizeof(facts));
	switch (q->op) {
	case FILE_FIND:
		err = find__file(s, elf, sock, q, &facts);
		break;
	case FILE_SYMBOL:
		err = find_symbol(elf, sock, q);
		break;
	default:
		err = -EINVAL;
	}
	end->over_budget = elf__over_budget(elf);
	elf__close(elf);
	return err;
}

static bool is_used_up(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) || t.tv_sec >= CPU_MAX;
}

/* Returns false if no more requests are taken. */
static bool handle_question(struct session *s, int sock, struct file_question *q, int fd)
{
	struct found_end end = {};

	misbehave(sock, q);
	end.result = answer_question(s, sock, q, fd, &end);
	end.last = is_used_up();
	return !answer__send(sock, ANSWER_END, 0, &end, sizeof(end)) && !end.last;
}

void examine__serve(int sock, void *session)
{
	static union {
		u32 kind;
		struct file_question file;
		struct dwarf_request dwarf;
	} q;
	bool more = true;
	ssize_t n;
	int fd;

	while (more && (n = message__receive(sock, &q, sizeof(q) - 1, &fd)) > 0 && fd >= 0) {
		((char *)&q)[n] = '\0';
		more = false;
		if (n > (ssize_t)offsetof(struct file_question, path) && q.kind == FILE_QUESTION)
			more = handle_question(session, sock, &q.file, fd);
		else if (n == sizeof(q.dwarf) && q.kind == DWARF_REQUEST)
			dwarf_job__answer(sock, &q.dwarf, fd);
		close(fd);
	}
}
