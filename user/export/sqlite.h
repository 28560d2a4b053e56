/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of the SQLite exporter. All return 0, or -EIO with a message. */
#pragma once

#include <sqlite3.h>

#include "export/export.h"
#include "util/map.h"

struct nsight;

struct sqlite {
	struct export *e;
	sqlite3 *db;
	struct map inserts; /* u16 id of a kind -> sqlite3_stmt * */
	struct nsight *nsight;
	struct map tasks; /* struct task_key -> u8 */
};

/* sqlite.c */
int sqlite__execute(const struct sqlite *s, const char *sql);
int sqlite__prepare(const struct sqlite *s, const char *sql, sqlite3_stmt **out);
/* Inserts the bound row. */
int sqlite__step(const struct sqlite *s, sqlite3_stmt *insert);
/* Binds a text; NULL becomes SQL's NULL. */
void sqlite__bind_text(sqlite3_stmt *insert, int column, const char *text);
/* Binds NULL for 0, which means not known. */
void sqlite__bind_known(sqlite3_stmt *insert, int column, u64 value);

/* sqlite_gpu.c: writes tables gpu_work and gpus if the trace has such events; reads the trace once more. */
int sqlite__put_gpu_work(const struct sqlite *s);
