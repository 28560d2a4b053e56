/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Within the exporter to SQLite. All return 0 or -EIO, and then say why. */
#ifndef SONDE_EXPORT_SQLITE_H
#define SONDE_EXPORT_SQLITE_H

#include <sqlite3.h>

#include "export/export.h"
#include "util/map.h"

struct sqlite {
	struct export *e;
	sqlite3 *db;
	struct map inserts; /* u16 id of a kind -> sqlite3_stmt * */
	struct map tasks; /* struct task_key -> u8 */
};

/* sqlite.c */
int sqlite__failed(const struct sqlite *s, const char *what);
int sqlite__execute(const struct sqlite *s, const char *sql);
int sqlite__prepare(const struct sqlite *s, const char *sql, sqlite3_stmt **out);
/* Inserts what is bound. */
int sqlite__step(const struct sqlite *s, sqlite3_stmt *insert);
/* NULL stays one. */
void sqlite__bind_text(sqlite3_stmt *insert, int column, const char *text);
/* 0, which is "not known" here, as NULL */
void sqlite__bind_known(sqlite3_stmt *insert, int column, u64 value);

/* sqlite_gpu.c: tables gpu_work and gpus, if there is any; reads the trace once more. */
int sqlite__put_gpu_work(const struct sqlite *s);

#endif
