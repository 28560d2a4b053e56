// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/stacks/source_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/meta.h"
#include "record/parts.h"
#include "util/array.h"
#include "util/source_path.h"
#include "util/utf8.h"

#define FILES_MAX    4096
#define ASKED_MAX    16384
#define LINES_MAX    65536
#define BYTES_MAX    (8 << 20) /* texts of files */
#define WRITTEN_MAX  (512 << 10) /* lines in the trace */
#define ASK_PER_TICK 32
#define FINISH_NS    1000000000ULL /* for the files that are read at the end */

struct source_file {
	char *path;
	char *text; /* NULL: not read */
	size_t size;
	bool is_refused; /* no line is written any more */
	bool is_in_trace; /* a line was written */
};

struct source_user {
	u32 pid, file;
};

struct source_question {
	struct source_user user;
	u64 built; /* when the code was compiled, CLOCK_REALTIME ns; 0: the process compiles it */
};

struct source_line {
	u32 file, line;
};

void source_texts__init(struct source_texts *t)
{
	map__init(&t->paths, sizeof(u64), sizeof(u32));
	map__init(&t->asked, sizeof(struct source_user), sizeof(u8));
	map__init(&t->lines, sizeof(struct source_line), sizeof(u8));
}

void source_texts__free(struct source_texts *t)
{
	for (u32 i = 0; i < t->n_files; i++) {
		free(t->files[i].path);
		free(t->files[i].text);
	}
	free(t->files);
	free(t->questions);
	free(t->waiting);
	MAPS_FREE(&t->paths, &t->asked, &t->lines);
}

/* Is it new, and was it added? */
static bool add_once(struct map *m, const void *key, u32 max)
{
	u8 *is_known = map__find(m, key);

	if (is_known || m->n == max)
		return false;
	is_known = map__get(m, key);
	return is_known && (*is_known = 1);
}

static u32 file_number(struct source_texts *t, const char *path)
{
	u64 hash = map__hash_bytes(path, strlen(path));
	u32 *number = map__find(&t->paths, &hash);
	char *copy;

	if (number || t->n_files == FILES_MAX)
		return number ? *number : 0;
	number = map__get(&t->paths, &hash);
	copy = number ? strdup(path) : NULL;
	if (!copy || !array__push(t->files, t->n_files, (struct source_file){ .path = copy })) {
		free(copy);
		return 0;
	}
	return *number = t->n_files;
}

u32 source_texts__file(struct session *s, struct source_texts *t, u32 pid, const char *path, u64 built)
{
	struct source_user user = { .pid = pid };

	if (s->args->no_source || s->args->no_args || !source_path__is_users(path))
		return 0;
	user.file = file_number(t, path);
	if (user.file && add_once(&t->asked, &user, ASKED_MAX) &&
	    !array__push(t->questions, t->n_questions, ((struct source_question){ user, built })))
		return 0;
	return user.file;
}

void source_texts__line(struct source_texts *t, u32 file, u32 line)
{
	struct source_line key = { .file = file, .line = line };

	if (!file || !line || t->files[file - 1].is_refused || !add_once(&t->lines, &key, LINES_MAX))
		return;
	if (!array__push(t->waiting, t->n_waiting, key))
		return;
}

static void write_text(struct session *s, const struct source_file *f, u32 line, const char *text)
{
	struct meta_source e = {
		.event = session__event(s, ID_meta_source),
		.file = session__intern(s, f->path),
		.line = line,
		.text = session__intern(s, text),
	};

	session__emit(s, &e, sizeof(e));
}

static void refuse(struct session *s, struct source_texts *t, struct source_file *f)
{
	if (f->is_in_trace && !f->is_refused)
		write_text(s, f, 0, "");
	f->is_refused = true;
	t->bytes -= f->size;
	f->size = 0;
	free(f->text);
	f->text = NULL;
}

/* Python also ends lines at a carriage return alone, which old files have: their lines would be counted wrongly. */
static bool has_other_ends(const char *text, size_t size)
{
	const char *end = text + size;

	while ((text = memchr(text, '\r', (size_t)(end - text))) != NULL)
		if (++text == end || *text != '\n')
			return true;
	return false;
}

static void on_text(struct session *s, struct source_texts *t, struct source_file *f, char *text, size_t size)
{
	bool is_same = f->text && f->size == size && !memcmp(f->text, text, size);

	if (!f->is_refused && !f->text && t->bytes + size <= BYTES_MAX && !has_other_ends(text, size)) {
		f->text = text;
		f->size = size;
		t->bytes += size;
		return;
	}
	if (!is_same)
		refuse(s, t, f);
	free(text);
}

static void ask(struct session *s, struct source_texts *t, const struct source_question *q)
{
	u32 pid = q->user.pid, file = q->user.file - 1;
	const char *path = t->files[file].path;
	char *text = NULL;
	size_t size = 0;
	int err = process__is_hung(s, pid) ? -ETIMEDOUT :
					     attacher__source(s->attacher, pid, path, q->built, &text, &size);

	process__note_answer(s, pid, err);
	/* files may have been added meanwhile */
	if (!err)
		on_text(s, t, &t->files[file], text, size);
	else if (err != -ESRCH) /* that process has ended */
		refuse(s, t, &t->files[file]);
}

/* Returns the beginning of a line and sets *len; NULL: the text has no such line. */
static const char *find_line(const struct source_file *f, u32 line, size_t *len)
{
	const char *at = f->text, *end = f->text + f->size, *next = at;

	for (; line && next; line--) {
		at = next;
		next = memchr(at, '\n', (size_t)(end - at));
		*len = (size_t)((next ? next : end) - at);
		next = next ? next + 1 : NULL;
	}
	return line ? NULL : at;
}

static void write_line(struct session *s, struct source_texts *t, struct source_file *f, u32 line)
{
	char whole[4 * SOURCE_LINE_MAX], text[SOURCE_LINE_MAX + 1];
	size_t len = 0;
	const char *at = find_line(f, line, &len);

	for (; at && len && (*at == ' ' || *at == '\t'); at++)
		len--;
	len = len < sizeof(whole) ? len : sizeof(whole) - 1;
	for (size_t i = 0; i < len; i++)
		whole[i] = (unsigned char)at[i] < ' ' || at[i] == 0x7f ? ' ' : at[i];
	while (len && whole[len - 1] == ' ')
		len--;
	whole[len] = '\0';
	if (!len || t->written + len > WRITTEN_MAX)
		return;
	/* utf8__copy() cuts between characters */
	utf8__copy(text, len < sizeof(text) ? sizeof(text) : sizeof(text) - 3, whole);
	if (strlen(text) < len)
		strcat(text, "...");
	t->written += strlen(text);
	f->is_in_trace = true;
	write_text(s, f, line, text);
}

static void write_waiting(struct session *s, struct source_texts *t)
{
	u32 left = 0;

	for (u32 i = 0; i < t->n_waiting; i++) {
		struct source_line l = t->waiting[i];
		struct source_file *f = &t->files[l.file - 1];

		if (f->text)
			write_line(s, t, f, l.line);
		else if (!f->is_refused)
			t->waiting[left++] = l;
	}
	t->n_waiting = left;
}

static void ask_some(struct session *s, struct source_texts *t, u32 max)
{
	while (t->asks < t->n_questions && max--)
		ask(s, t, &t->questions[t->asks++]);
	if (t->asks == t->n_questions) {
		free(t->questions);
		t->questions = NULL;
		t->n_questions = t->asks = 0;
	}
}

void source_texts__tick(struct session *s, struct source_texts *t)
{
	if (t->asks < t->n_questions)
		ask_some(s, t, ASK_PER_TICK);
	if (t->n_waiting)
		write_waiting(s, t);
}

void source_texts__finish(struct session *s, struct source_texts *t)
{
	u64 until = session__now(s) + FINISH_NS;

	while (t->asks < t->n_questions && session__now(s) < until)
		ask_some(s, t, 1);
	write_waiting(s, t);
}

void source_texts__sizes(const struct source_texts *t, table_size_fn *fn, void *arg)
{
	fn(&(struct table_size){ .name = "source files", .entries = t->n_files, .max = FILES_MAX, .bytes = t->bytes },
	   arg);
}
