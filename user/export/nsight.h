/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nsight Systems' tables in the SQLite database: the names, columns and values that `nsys export` writes, so that the
 * SQL of `nsys stats` and programs for its files work (docs/exports.md, "SQLite").
 *
 *	nsight.c	tables, rows, names, numbers of threads
 *	nsight_enums.c	tables of enums
 *	nsight_facts.c	the machine, processes, threads, what was lost
 *	nsight_gpu.c	GPU work and the calls that launched it
 *	nsight_rows.c	chooses what to do with each kind of event
 *	nsight_nvtx.c	ranges: those of NVTX, and those that Nsight shows like them
 *
 * All functions that return int return 0 or negative errno.
 */
#pragma once

#include "export/gpus.h"
#include "export/sqlite.h"

/*
 * A table, created with its first row. Columns are separated by blanks: "start! end! text:t id:p", where ! is NOT NULL,
 * :t TEXT, :r REAL, :p the primary key, and all others are INTEGER.
 */
struct nsight_table {
	const char *name, *columns;
	const char *filled; /* names of the columns that rows have, separated by commas; the others are NULL */
};

/* The value of a column */
struct nsight_value {
	enum { NSIGHT_NONE, NSIGHT_NUMBER, NSIGHT_TIME, NSIGHT_REAL, NSIGHT_TEXT, NSIGHT_NAME } type;
	s64 number;
	double real;
	const char *text; /* NULL: SQL's NULL */
};

#define N_NONE		  ((struct nsight_value){ .type = NSIGHT_NONE })
#define N_NUMBER(n)	  ((struct nsight_value){ .type = NSIGHT_NUMBER, .number = (s64)(n) })
#define N_TIME(t)	  ((struct nsight_value){ .type = NSIGHT_TIME, .number = (s64)(t) }) /* CLOCK_MONOTONIC ns */
#define N_REAL(r)	  ((struct nsight_value){ .type = NSIGHT_REAL, .real = (r) })
#define N_TEXT(t)	  ((struct nsight_value){ .type = NSIGHT_TEXT, .text = (t) })
#define N_NAME(t)	  ((struct nsight_value){ .type = NSIGHT_NAME, .text = (t) }) /* its id in StringIds */
#define N_KNOWN(n)	  ((n) ? N_NUMBER(n) : N_NONE)
#define N_THREAD(...)	  N_NUMBER(nsight__thread(__VA_ARGS__))
#define N_PROCESS(n, pid) N_NUMBER(nsight__thread(n, pid, 0))

/* A domain of ranges in a process: one of NVTX by the id of its name, or one of nsight_nvtx.c by a small number */
struct nsight_domain {
	u64 domain;
	u32 pid, unused;
};

struct nsight {
	const struct sqlite *s;
	struct map inserts; /* const struct nsight_table * -> sqlite3_stmt * */
	struct map strings; /* hash of a text -> u32 id */
	struct gpus gpus;
	struct map devices; /* u32 number of a GPU -> u8: it has a row */
	struct map contexts; /* struct nsight_context -> u32 device */
	struct map domains; /* struct nsight_domain -> u32 number */
	u32 last_correlation; /* the highest id of CUPTI */
	u64 last_launch; /* the highest number of a launch */
};

int nsight__new(struct nsight **out, const struct sqlite *s);
void nsight__free(struct nsight *n);
/* Returns the number for columns globalTid, or of a process (tid 0) for globalPid. */
s64 nsight__thread(const struct nsight *n, u32 pid, u32 tid);
/* Returns the id of a text in StringIds, or negative errno. */
s64 nsight__string(struct nsight *n, const char *text);
int nsight__create(const struct nsight *n, const struct nsight_table *t);
int nsight__put(struct nsight *n, const struct nsight_table *t, const struct nsight_value *values, int count);
/* Ends the use of a table that is to be dropped. */
void nsight__forget(struct nsight *n, const struct nsight_table *t);
#define NSIGHT_PUT(n, t, ...)                                           \
	nsight__put(n, t, (const struct nsight_value[]){ __VA_ARGS__ }, \
		    sizeof((const struct nsight_value[]){ __VA_ARGS__ }) / sizeof(struct nsight_value))

/* Writes what events of this kind are in Nsight's tables. */
int nsight__rows(struct nsight *n, const struct rows *rows);
int nsight__put_thread(struct nsight *n, u32 pid, u32 tid);
int nsight__put_process(struct nsight *n, const struct task *t);
/* Writes a warning. */
int nsight__put_diagnostic(struct nsight *n, u64 time, const char *text);
/* After all else: the machine and the recording, views of stacks. */
int nsight__put_facts(struct nsight *n);
int nsight__put_enums(struct nsight *n);

/* For the listener of a gpu_model. */
int nsight__put_work(struct nsight *n, struct gpu_model *model, const struct gpu_work *w);
int nsight__put_call(struct nsight *n, const struct gpu_host_call *c);
/* After all work: gives the calls the correlation ids of their work. */
int nsight__join_calls(struct nsight *n);
bool nsight__has_calls(const struct nsight *n);

/* An event with the fields that nsight_rows.c reads for its kind. */
struct nsight_event {
	const struct view *view;
	u64 start, time;
	u32 pid, tid;
	u16 cpu;
	bool is_open; /* it had not ended when tracing did */
	bool is_untimed; /* that, or its end was not recorded */
	const char *function; /* of the probe; NULL: not known */
	s64 result;
	const struct schema_field *const *field;
	s64 value[8]; /* of these fields */
};

/* nsight_gpu.c */
int nsight__put_device(struct nsight *n, const struct nsight_event *e);
int nsight__put_context(struct nsight *n, const struct nsight_event *e);
int nsight__put_stream(struct nsight *n, const struct nsight_event *e);
int nsight__put_sync(struct nsight *n, const struct nsight_event *e);
int nsight__put_memory(struct nsight *n, const struct nsight_event *e);
/* nsight_nvtx.c */
int nsight__put_range(struct nsight *n, const struct nsight_event *e);
int nsight__put_mark(struct nsight *n, const struct nsight_event *e);
int nsight__put_category(struct nsight *n, const struct nsight_event *e);
int nsight__put_torch(struct nsight *n, const struct nsight_event *e);
int nsight__put_nccl(struct nsight *n, const struct nsight_event *e);
int nsight__put_gil_wait(struct nsight *n, const struct nsight_event *e);
int nsight__put_gil_hold(struct nsight *n, const struct nsight_event *e);
