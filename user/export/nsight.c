// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables, rows and names as `nsys export` writes them. */
#include "export/nsight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct nsight_table string_ids = { "StringIds", "id:p value:t!", "id,value" };

/* Two hashes, so that texts do not collide by chance */
struct string_key {
	u64 hash[2];
};

/* Writes "name TYPE NOT NULL" for "name:t!". */
static void put_column(FILE *sql, const char *column, int len)
{
	const char *type = memchr(column, ':', (size_t)len);
	bool is_needed = column[len - 1] == '!';
	char kind = type ? type[1] : 'i';
	int name = type ? (int)(type - column) : len - is_needed;

	fprintf(sql, "\"%.*s\" %s", name, column, kind == 't' ? "TEXT" : kind == 'r' ? "REAL" : "INTEGER");
	fputs(kind == 'p' ? " NOT NULL PRIMARY KEY" : is_needed ? " NOT NULL" : "", sql);
}

int nsight__create(const struct nsight *n, const struct nsight_table *t)
{
	char *text = NULL;
	size_t len;
	FILE *sql = open_memstream(&text, &len);
	int err;

	if (!sql)
		return -ENOMEM;
	fprintf(sql, "CREATE TABLE %s(", t->name);
	for (const char *c = t->columns; *c; c += strspn(c, " ")) {
		int column = (int)strcspn(c, " ");

		put_column(sql, c, column);
		c += column;
		fputs(*c ? ", " : ")", sql);
	}
	err = fclose(sql) ? -ENOMEM : sqlite__execute(n->s, text);
	free(text);
	return err;
}

/* Writes "INSERT INTO t("start", "end") VALUES(?, ?)". */
static int prepare(const struct nsight *n, const struct nsight_table *t, sqlite3_stmt **out)
{
	char *text = NULL;
	size_t len;
	FILE *sql = open_memstream(&text, &len);
	int err, columns = 1;

	if (!sql)
		return -ENOMEM;
	fprintf(sql, "INSERT INTO %s(\"", t->name);
	for (const char *c = t->filled; *c; c++) {
		columns += *c == ',';
		fputs(*c == ',' ? "\", \"" : (char[2]){ *c }, sql);
	}
	fputs("\") VALUES(?", sql);
	while (--columns)
		fputs(", ?", sql);
	putc(')', sql);
	err = fclose(sql) ? -ENOMEM : sqlite__prepare(n->s, text, out);
	free(text);
	return err;
}

s64 nsight__thread(const struct nsight *n, u32 pid, u32 tid)
{
	const struct names *names = n->s->e->names;
	u64 machine = 1 + (u64)names__machine(names, pid);

	/* a process number of Nsight has 24 bits, as the kernel's largest pid has 22 */
	return (s64)((machine & 0x7f) << 56 | (u64)(names__number(names, pid) & 0xffffff) << 24 |
		     (names__number(names, tid) & 0xffffff));
}

s64 nsight__string(struct nsight *n, const char *text)
{
	size_t len = strlen(text);
	struct string_key key = { { XXH64(text, len, 0), XXH64(text, len, 1) } };
	const u32 *known = map__find(&n->strings, &key);
	u32 *id;
	int err;

	if (known)
		return *known;
	id = map__get(&n->strings, &key);
	if (!id)
		return -ENOMEM;
	*id = n->strings.n - 1;
	err = NSIGHT_PUT(n, &string_ids, N_NUMBER(*id), N_TEXT(text));
	return err ? err : (s64)*id;
}

static int bind(struct nsight *n, sqlite3_stmt *insert, int column, const struct nsight_value *v)
{
	s64 number = v->number;

	if (v->type == NSIGHT_NONE || ((v->type == NSIGHT_TEXT || v->type == NSIGHT_NAME) && !v->text)) {
		sqlite3_bind_null(insert, column);
		return 0;
	}
	if (v->type == NSIGHT_TEXT) {
		sqlite__bind_text(insert, column, v->text);
		return 0;
	}
	if (v->type == NSIGHT_REAL) {
		sqlite3_bind_double(insert, column, v->real);
		return 0;
	}
	if (v->type == NSIGHT_NAME)
		number = nsight__string(n, v->text);
	if (v->type == NSIGHT_NAME && number < 0)
		return (int)number;
	if (v->type == NSIGHT_TIME)
		number -= (s64)n->s->e->facts->start;
	sqlite3_bind_int64(insert, column, number);
	return 0;
}

int nsight__put(struct nsight *n, const struct nsight_table *t, const struct nsight_value *values, int count)
{
	sqlite3_stmt **insert = map__get(&n->inserts, &t);
	int err = insert ? 0 : -ENOMEM;

	if (!err && !*insert)
		err = nsight__create(n, t);
	if (!err && !*insert)
		err = prepare(n, t, insert);
	if (!err && sqlite3_bind_parameter_count(*insert) != count)
		err = -EINVAL;
	for (int i = 0; !err && i < count; i++)
		err = bind(n, *insert, i + 1, &values[i]);
	return err ? err : sqlite__step(n->s, *insert);
}

void nsight__forget(struct nsight *n, const struct nsight_table *t)
{
	sqlite3_stmt **insert = map__find(&n->inserts, &t);

	if (insert)
		sqlite3_finalize(*insert);
	map__remove(&n->inserts, &t);
}

int nsight__new(struct nsight **out, const struct sqlite *s)
{
	struct nsight *n = *out = calloc(1, sizeof(*n));
	s64 empty;

	if (!n)
		return -ENOMEM;
	n->s = s;
	map__init(&n->inserts, sizeof(const struct nsight_table *), sizeof(sqlite3_stmt *));
	map__init(&n->strings, sizeof(struct string_key), sizeof(u32));
	map__init(&n->devices, sizeof(u32), sizeof(u8));
	map__init(&n->contexts, 2 * sizeof(u32), sizeof(u32));
	map__init(&n->domains, sizeof(struct nsight_domain), sizeof(u32));
	empty = nsight__string(n, "");
	return empty < 0 ? (int)empty : gpus__load(&n->gpus, s->e->trace);
}

void nsight__free(struct nsight *n)
{
	if (!n)
		return;
	MAP_EACH(sqlite3_stmt **insert, &n->inserts)
		sqlite3_finalize(*insert);
	MAPS_FREE(&n->inserts, &n->strings, &n->devices, &n->contexts, &n->domains);
	gpus__free(&n->gpus);
	free(n);
}
