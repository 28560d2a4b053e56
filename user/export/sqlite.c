// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes an SQLite database: Nsight Systems' tables (nsight.h), and those of sonde, whose names begin with "sonde_":
 * one for each kind of event that occurs, with a column for each field. Enums and interned strings are text. SQLite's
 * integers are signed: values from 2^63 on become negative. docs/exports.md has queries.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/frame_text.h"
#include "export/nsight.h"
#include "export/sqlite.h"
#include "export/value.h"
#include "output/text.h"

struct task_key {
	u32 pid, tid;
};

static int failed(const struct sqlite *s, const char *what)
{
	snprintf(s->e->why, sizeof(s->e->why), "sqlite: %s: %s", what, sqlite3_errmsg(s->db));
	return -EIO;
}

int sqlite__execute(const struct sqlite *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) ? failed(s, sql) : 0;
}

int sqlite__prepare(const struct sqlite *s, const char *sql, sqlite3_stmt **out)
{
	return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) ? failed(s, sql) : 0;
}

int sqlite__step(const struct sqlite *s, sqlite3_stmt *insert)
{
	int done = sqlite3_step(insert);

	sqlite3_reset(insert);
	return done == SQLITE_DONE ? 0 : failed(s, "insert");
}

/* Binds a name, which may have any bytes, as valid UTF-8. */
static void bind_bytes(sqlite3_stmt *insert, int column, const char *text, size_t len)
{
	char *clean;
	size_t i;

	for (i = 0; i < len && (signed char)text[i] > 0; i++)
		;
	if (i == len) {
		sqlite3_bind_text(insert, column, text, (int)len, SQLITE_TRANSIENT);
		return;
	}
	clean = text__utf8(text, len);
	if (clean)
		sqlite3_bind_text(insert, column, clean, -1, free);
	else
		sqlite3_bind_null(insert, column);
}

/* Binds a text; NULL becomes SQL's NULL. */
void sqlite__bind_text(sqlite3_stmt *insert, int column, const char *text)
{
	if (text)
		bind_bytes(insert, column, text, strlen(text));
	else
		sqlite3_bind_null(insert, column);
}

static int put_info(const struct sqlite *s, sqlite3_stmt *insert, const char *name, const char *text)
{
	sqlite__bind_text(insert, 1, name);
	sqlite__bind_text(insert, 2, text);
	return sqlite__step(s, insert);
}

static int put_number(const struct sqlite *s, sqlite3_stmt *insert, const char *name, u64 value)
{
	sqlite__bind_text(insert, 1, name);
	sqlite3_bind_int64(insert, 2, (sqlite3_int64)value);
	return sqlite__step(s, insert);
}

/* Writes table info: the origin of the trace, and all clocks at one time to convert times. */
static int put_head(const struct sqlite *s, const struct trace_facts *facts)
{
	const struct trace_head *h = facts->head;
	sqlite3_stmt *insert;
	int err = sqlite__execute(s, "CREATE TABLE sonde_info(name TEXT, value)");

	if (!err)
		err = sqlite__prepare(s, "INSERT INTO sonde_info VALUES(?, ?)", &insert);
	if (err)
		return err;
	if (put_info(s, insert, "file", facts->file) || put_info(s, insert, "hostname", h->hostname) ||
	    put_info(s, insert, "kernel", h->kernel) || put_info(s, insert, "sonde_version", h->sonde_version) ||
	    put_info(s, insert, "command", h->command) || put_number(s, insert, "start", facts->start) ||
	    put_number(s, insert, "live", facts->live) || put_number(s, insert, "stop", facts->stop) ||
	    put_number(s, insert, "monotonic", h->monotonic) || put_number(s, insert, "boottime", h->boottime) ||
	    put_number(s, insert, "realtime", h->realtime) ||
	    put_info(s, insert, "end_reason", facts->end_reason ? end__reason(facts->end_reason) : NULL))
		err = -EIO;
	sqlite3_finalize(insert);
	return err;
}

static int given = -1;

/* Replaces open(2) in SQLite: the first file that it opens is the database. */
static int open_given(const char *path, int flags, int mode)
{
	int fd = given;

	given = -1;
	return fd < 0 ? open(path, flags, mode) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/*
 * Opens the database by its descriptor: the output has no name yet, and under a name another user could place a link.
 * SQLite's open(2) is replaced for a moment by one that returns the descriptor.
 */
static int open_database(struct sqlite *s, int fd)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	int err;

	if (!vfs || vfs->iVersion < 3 ||
	    vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)(void (*)(void))open_given))
		return SQLITE_CANTOPEN;
	given = fd;
	err = sqlite3_open_v2("/sonde-export", &s->db, SQLITE_OPEN_READWRITE, NULL);
	/* SQLite does not open the database later. */
	given = -1;
	vfs->xSetSystemCall(vfs, "open", NULL);
	return err;
}

static int begin(struct export *e)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	e->data = s;
	s->e = e;
	map__init(&s->inserts, sizeof(u16), sizeof(sqlite3_stmt *));
	map__init(&s->tasks, sizeof(struct task_key), sizeof(u8));
	if (open_database(s, e->fd))
		return failed(s, e->path);
	/* One process writes in one transaction, and an incomplete file is discarded, so no journal is needed. */
	err = sqlite__execute(s, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
				 "PRAGMA temp_store=MEMORY; BEGIN");
	if (!err)
		err = nsight__new(&s->nsight, s);
	return err ? err : put_head(s, e->facts);
}

static const char *type_of(const struct schema_event *e, const struct schema_field *f)
{
	if (f->type == FIELD_FLOAT)
		return "REAL";
	/* names__kernel_of returns a kernel's name. */
	if (!strcmp(f->name, "name") && !strcmp(e->name, "gpu_kernel"))
		return "TEXT";
	return f->type == FIELD_TEXT || f->type == FIELD_TAIL || f->type == FIELD_ENUM || !strcmp(f->unit, "string") ?
		       "TEXT" :
		       "INTEGER";
}

/* Writes a quoted SQL name; the trace may contain any. */
static void put_name(FILE *sql, const char *prefix, const char *name)
{
	fprintf(sql, "\"%s", prefix);
	for (; *name; name++) {
		if (*name == '"')
			putc('"', sql);
		putc(*name, sql);
	}
	putc('"', sql);
}

/* Creates the table of a kind and prepares its insert statement. */
static int create_table(const struct sqlite *s, const struct schema_event *e, sqlite3_stmt **insert)
{
	char *text = NULL;
	size_t len;
	FILE *sql = open_memstream(&text, &len);
	u32 i;
	int err;

	if (!sql)
		return -ENOMEM;
	fputs("CREATE TABLE ", sql);
	put_name(sql, "sonde_", e->name);
	putc('(', sql);
	for (i = 0; i < e->n; i++) {
		put_name(sql, "", e->fields[i].name);
		fprintf(sql, " %s, ", type_of(e, &e->fields[i]));
	}
	fputs(event__has_torch_name(e) ? "torch_name TEXT, probe_name TEXT)" : "probe_name TEXT)", sql);
	err = fclose(sql) ? -ENOMEM : sqlite__execute(s, text);
	free(text);
	text = NULL;
	sql = err ? NULL : open_memstream(&text, &len);
	if (!sql)
		return err ? err : -ENOMEM;
	fputs("INSERT INTO ", sql);
	put_name(sql, "sonde_", e->name);
	fputs(" VALUES(", sql);
	for (i = 0; i < e->n; i++)
		fputs("?, ", sql);
	fputs(event__has_torch_name(e) ? "?, ?)" : "?)", sql);
	err = fclose(sql) ? -ENOMEM : sqlite__prepare(s, text, insert);
	free(text);
	return err;
}

static int put_row(struct export *e, sqlite3_stmt *insert, const struct view *v, const struct common_fields *f)
{
	const struct sqlite *s = e->data;
	struct field_value value;
	char title[EVENT_TITLE];
	int i;

	for (i = 0; i < (int)v->event->n; i++) {
		field_value__get(&value, e->names, v, &v->event->fields[i], false);
		if (value.type == FIELD_IS_TEXT)
			bind_bytes(insert, i + 1, value.text, value.len);
		else if (value.type == FIELD_IS_DOUBLE)
			sqlite3_bind_double(insert, i + 1, value.d);
		else
			sqlite3_bind_int64(insert, i + 1, value.s);
	}
	if (event__has_torch_name(v->event))
		sqlite__bind_text(insert, ++i, names__torch(e->names, v, title, sizeof(title)));
	sqlite__bind_text(insert, i + 1, names__probe(e->names, (u16)view__s64(v, f->probe)));
	return sqlite__step(s, insert);
}

static int rows(struct export *e, const struct rows *rows)
{
	struct view v = { .event = rows__event(rows), .rows = rows };
	struct common_fields f = common_fields__of(v.event);
	struct sqlite *s = e->data;
	sqlite3_stmt **insert = map__get(&s->inserts, &v.event->id);
	struct task_key key;
	int err = insert ? 0 : -ENOMEM;

	if (!err && !*insert)
		err = create_table(s, v.event, insert);
	if (!err)
		err = nsight__rows(s->nsight, rows);
	for (; !err && v.i < rows__count(rows); v.i++) {
		key = (struct task_key){ (u32)view__s64(&v, f.pid), (u32)view__s64(&v, f.tid) };
		if (key.tid && !map__get(&s->tasks, &key))
			return -ENOMEM;
		err = put_row(e, *insert, &v, &f);
	}
	return err;
}

static int put_threads(const struct sqlite *s, const struct names *names)
{
	const struct task_key *key;
	u64 since, until;
	sqlite3_stmt *insert;
	int err = sqlite__execute(
		s, "CREATE TABLE sonde_threads(pid INTEGER, tid INTEGER, name TEXT, since INTEGER, until INTEGER)");
	u32 i;

	if (!err)
		err = sqlite__prepare(s, "INSERT INTO sonde_threads VALUES(?, ?, ?, ?, ?)", &insert);
	if (err)
		return err;
	for (i = 0; !err && i < s->tasks.n; i++) {
		key = map__key(&s->tasks, i);
		sqlite3_bind_int64(insert, 1, names__number(names, key->pid));
		sqlite3_bind_int64(insert, 2, names__number(names, key->tid));
		sqlite__bind_text(insert, 3, names__comm(names, key->pid, key->tid));
		names__held(names, key->tid, &since, &until);
		sqlite3_bind_int64(insert, 4, (sqlite3_int64)since);
		sqlite3_bind_int64(insert, 5, until > INT64_MAX ? INT64_MAX : (sqlite3_int64)until);
		err = sqlite__step(s, insert);
		if (!err)
			err = nsight__put_thread(s->nsight, key->pid, key->tid);
	}
	sqlite3_finalize(insert);
	return err;
}

struct process_pass {
	const struct sqlite *s;
	const struct names *names;
	sqlite3_stmt *insert;
	int err;
};

/* Binds NULL for 0, which means not known. */
void sqlite__bind_known(sqlite3_stmt *insert, int column, u64 value)
{
	if (value)
		sqlite3_bind_int64(insert, column, (sqlite3_int64)value);
	else
		sqlite3_bind_null(insert, column);
}

static void put_process(const struct task *t, void *arg)
{
	struct process_pass *p = arg;

	if (p->err)
		return;
	sqlite3_bind_int64(p->insert, 1, t->pid);
	sqlite__bind_known(p->insert, 2, t->ppid);
	sqlite__bind_known(p->insert, 3, t->ns_pid);
	sqlite__bind_text(p->insert, 4, task__name(t));
	sqlite__bind_text(p->insert, 5, t->exe ? names__string(p->names, t->exe) : NULL);
	sqlite__bind_text(p->insert, 6, t->command ? names__string(p->names, t->command) : NULL);
	sqlite__bind_known(p->insert, 7, t->start);
	sqlite__bind_known(p->insert, 8, t->end);
	p->err = sqlite__step(p->s, p->insert);
	if (!p->err)
		p->err = nsight__put_process(p->s->nsight, t);
}

static int put_processes(const struct sqlite *s, const struct names *names)
{
	struct process_pass p = { .s = s, .names = names };
	int err = sqlite__execute(
		s, "CREATE TABLE sonde_processes(pid INTEGER, ppid INTEGER, ns_pid INTEGER, name TEXT, exe TEXT, "
		   "command TEXT, start INTEGER, \"end\" INTEGER)");

	if (!err)
		err = sqlite__prepare(s, "INSERT INTO sonde_processes VALUES(?, ?, ?, ?, ?, ?, ?, ?)", &p.insert);
	if (err)
		return err;
	names__each_process(names, put_process, &p);
	sqlite3_finalize(p.insert);
	return p.err;
}

static int put_losses(const struct sqlite *s, const struct trace_facts *facts)
{
	struct loss_times times = trace_facts__times(facts);
	const struct loss *l;
	char text[512];
	sqlite3_stmt *insert;
	int err = sqlite__execute(
		s, "CREATE TABLE sonde_losses(family TEXT, reason TEXT, count INTEGER, first INTEGER, last INTEGER, "
		   "path TEXT)");
	u32 i;

	if (!err)
		err = sqlite__prepare(s, "INSERT INTO sonde_losses VALUES(?, ?, ?, ?, ?, ?)", &insert);
	if (err)
		return err;
	for (i = 0; !err && i < facts->n_losses; i++) {
		l = &facts->losses[i];
		sqlite__bind_text(insert, 1, l->family_name);
		sqlite__bind_text(insert, 2, loss__reason(l->reason));
		sqlite3_bind_int64(insert, 3, (sqlite3_int64)l->count);
		sqlite3_bind_int64(insert, 4, (sqlite3_int64)l->first);
		sqlite3_bind_int64(insert, 5, (sqlite3_int64)l->last);
		sqlite__bind_text(insert, 6, l->path);
		err = sqlite__step(s, insert);
		losses__line(text, sizeof(text), facts->losses, facts->n_losses, i, &times);
		if (!err && *text)
			err = nsight__put_diagnostic(s->nsight, l->first, text);
	}
	sqlite3_finalize(insert);
	return err;
}

/* Writes table frames, to which stack columns refer; docs/exports.md has a query that follows the callers. */
static int put_frames(const struct sqlite *s, const struct stacks *stacks)
{
	const struct stack_frame *f;
	char label[STACK_LABEL];
	sqlite3_stmt *insert;
	int err = sqlite__execute(
		s,
		"CREATE TABLE sonde_frames(id INTEGER PRIMARY KEY, caller INTEGER, depth INTEGER, label TEXT, "
		"name TEXT, file TEXT, source TEXT, line INTEGER, symbolId INTEGER, moduleId INTEGER, isKernel INTEGER)");
	s64 symbol, module;
	u32 i, id;

	if (!err)
		err = sqlite__prepare(s, "INSERT INTO sonde_frames VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &insert);
	if (err)
		return err;
	for (i = 0; !err && i < stacks__count(stacks); i++) {
		id = stacks__id(stacks, i);
		f = stacks__frame(stacks, id);
		sqlite3_bind_int64(insert, 1, id);
		sqlite__bind_known(insert, 2, f->caller);
		sqlite3_bind_int64(insert, 3, stacks__depth(stacks, id));
		sqlite__bind_text(insert, 4, stacks__label(stacks, id, label, sizeof(label)));
		bind_bytes(insert, 5, f->name, strnlen(f->name, FRAME_TEXT_MAX));
		bind_bytes(insert, 6, f->file, strnlen(f->file, FRAME_TEXT_MAX));
		sqlite__bind_text(insert, 7, *f->source ? f->source : NULL);
		sqlite__bind_known(insert, 8, f->line);
		symbol = nsight__string(s->nsight, f->name);
		module = nsight__string(s->nsight, f->file);
		sqlite3_bind_int64(insert, 9, symbol);
		sqlite3_bind_int64(insert, 10, module);
		sqlite3_bind_int64(insert, 11, f->kind == FRAME_KERNEL);
		err = symbol < 0 || module < 0 ? -ENOMEM : sqlite__step(s, insert);
	}
	sqlite3_finalize(insert);
	return err;
}

static int finish(struct export *e)
{
	const struct sqlite *s = e->data;
	int err = put_threads(s, e->names);

	if (!err)
		err = put_processes(s, e->names);
	if (!err)
		err = put_losses(s, e->facts);
	if (!err)
		err = put_frames(s, e->stacks);
	if (!err)
		err = sqlite__put_gpu_work(s);
	if (!err)
		err = nsight__put_facts(s->nsight);
	return err ? err : sqlite__execute(s, "COMMIT");
}

static int end(struct export *e)
{
	struct sqlite *s = e->data;
	int err = 0;
	u32 i;

	if (!s)
		return 0;
	/* A failure has ended the transaction. */
	if (s->db && !sqlite3_get_autocommit(s->db))
		err = finish(e);
	for (i = 0; i < s->inserts.n; i++)
		sqlite3_finalize(*(sqlite3_stmt **)map__value(&s->inserts, i));
	nsight__free(s->nsight);
	sqlite3_close(s->db);
	MAPS_FREE(&s->inserts, &s->tasks);
	free(s);
	return err;
}

EXPORTER(sqlite) = {
	.name = "sqlite",
	.doc = "an SQLite database: the tables of Nsight Systems, and one for each kind of event",
	.binary = true,
	.needs_file = true,
	.begin = begin,
	.rows = rows,
	.end = end,
};
