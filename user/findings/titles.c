// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/titles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "output/text.h"

/* Between the program and what it does; a title without it, "redis-server *:6379", is always the same. */
#define STATE ": "

/* The processes whose titles end in the same word, which mostly states what they do */
struct titled {
	u32 n;
	u32 pid; /* of one of them */
};

struct last_word {
	char text[24];
};

static struct last_word last_word_of(const char *title)
{
	struct last_word word = { 0 };
	const char *blank = strrchr(title, ' ');

	snprintf(word.text, sizeof(word.text), "%s", blank ? blank + 1 : title);
	return word;
}

static int count_titles(const struct finding_input *in, const struct group *g, struct map *words, u32 *n)
{
	struct map seen; /* u32 pid -> u8 */
	int err = 0;

	map__init(&seen, sizeof(u32), sizeof(u8));
	for (u32 i = 0; !err && i < g->n; i++) {
		u64 object = profile__key(in->profile, g->cells[i])->object;
		const struct osrt_file *file = object ? osrt_files__find(in->files, g->pid, (u32)object) : NULL;
		const char *title = file && file->peer ? names__peer_title(in->q->names, file->peer) : NULL;
		struct last_word word;
		struct titled *titled;

		if (!title || !strstr(title, STATE) || map__find(&seen, &file->peer))
			continue;
		word = last_word_of(title);
		titled = map__get(words, &word);
		err = titled && map__get(&seen, &file->peer) ? 0 : -ENOMEM;
		if (err)
			break;
		titled->n++;
		titled->pid = file->peer;
	}
	*n = seen.n;
	map__free(&seen);
	return err;
}

/* Adds `postgres 812: "app shop 127.0.0.1(51234) UPDATE waiting"`. */
static void quote(struct text_buffer *s, const struct names *names, u32 pid)
{
	const char *title = names__peer_title(names, pid), *comm = names__comm(names, pid, 0) ?: "process";
	size_t len = strlen(comm);

	if (!strncmp(title, comm, len) && !strncmp(title + len, STATE, strlen(STATE)))
		title += len + strlen(STATE);
	text__add(s, "%s %u: \"%.90s\"", comm, names__number(names, pid), title);
}

/* PostgreSQL states in a title what a session does (src/backend/utils/misc/ps_status.c). */
static bool is_postgres(const struct names *names, u32 pid)
{
	const char *comm = names__comm(names, pid, 0);

	return comm && !strcmp(comm, "postgres");
}

/* Do both names of connections end in the same server's address? Those of UNIX sockets have none. */
static bool is_same_server(const char *a, const char *b)
{
	const char *x = strstr(a, " to "), *y = strstr(b, " to ");
	size_t len = x ? strcspn(x + 4, " ") : 0;

	return x && y ? len == strcspn(y + 4, " ") && !memcmp(x + 4, y + 4, len) : !x && !y;
}

/* Adds a session of another process with the same server that keeps its locks while it executes nothing. */
static void add_idle_holder(const struct finding_input *in, const struct finding *f, struct text_buffer *s)
{
	const struct names *names = in->q->names;

	for (u32 i = 0; i < osrt_files__count(in->files); i++) {
		const struct osrt_file *file = osrt_files__at(in->files, i);
		const char *title = file->peer && file->pid != f->pid ? names__peer_title(names, file->peer) : NULL;
		char label[64];

		if (!title || !is_postgres(names, file->peer) || !strstr(title, "idle in transaction") ||
		    !is_same_server(f->object, osrt_files__name(in->files, file->number)))
			continue;
		text__add(s, ", and that of %s", names__label(names, label, sizeof(label), file->pid, 0));
		text__add(s, " was idle in a transaction, which keeps its locks");
		return;
	}
}

/* A wait this long on average is mostly still going on as the recording ends. */
#define LONG_WAIT_NS 100000000u

static void write_titles(const struct finding_input *in, const struct map *words, u32 n, struct finding *f)
{
	struct text_buffer s = { .buf = (char[384]){ 0 }, .size = 384 };
	const struct titled *most = NULL, *other = NULL;
	const char *word = "";
	bool waits;

	MAP_EACH_ENTRY(const struct titled *titled, const struct last_word *last, words)
		if (!most || titled->n > most->n) {
			most = titled;
			word = last->text;
		}
	MAP_EACH(const struct titled *titled, words)
		if (titled != most && (!other || titled->n > other->n))
			other = titled;
	/* the server has answered */
	if (!other && !strcmp(word, "idle"))
		return;
	text__add(&s, "as the recording ended, ");
	/* one session may have waited at that moment only */
	waits = is_postgres(in->q->names, most->pid) && !strcmp(word, "waiting") && 2 * most->n >= n &&
		(n > 1 || f->lost_ns > LONG_WAIT_NS * f->times);
	if (waits)
		f->words = "locks of other transactions in its database";
	if (n > 1)
		text__add(&s, "%u of %u titles ended in \"%s\": ", most->n, n, word);
	quote(&s, in->q->names, most->pid);
	if (other) {
		text__add(&s, ", ");
		quote(&s, in->q->names, other->pid);
	}
	if (waits)
		add_idle_holder(in, f, &s);
	finding__add_detail(f, s.buf);
}

void titles__add(const struct finding_input *in, const struct group *g, struct finding *f)
{
	struct map words; /* struct last_word -> struct titled */
	u32 n;

	map__init(&words, sizeof(struct last_word), sizeof(struct titled));
	if (!count_titles(in, g, &words, &n) && n)
		write_titles(in, &words, n, f);
	map__free(&words);
}
