// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/export_ranks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmd/cmd.h"
#include "cmd/subcommand.h"
#include "model/rank_processes.h"
#include "util/array.h"
#include "util/folder.h"

#define RANKS_MAX 4096

/* The ranks of the traces, in memory that is shared with the process that reads them */
struct found {
	const struct export_ranks *args;
	u64 time; /* CLOCK_REALTIME ns of the traces' start */
	u32 n;
	struct found_rank {
		u32 id, pid, rank;
		bool is_guess;
		char host[64];
	} list[RANKS_MAX];
};

static bool is_selected(const struct export_ranks *x, const struct rank_process *r)
{
	if (x->rank >= 0 && r->rank != x->rank)
		return false;
	return !x->pids->n || array__has(x->pids->list, x->pids->n, r->task->pid);
}

static int list(struct found *f, struct trace *t)
{
	struct rank_processes ranks = { 0 };
	struct names *names = NULL;
	int err = names__create(&names, trace__schema(t));

	if (!err)
		err = names__load(names, t);
	if (!err)
		err = rank_processes__list(&ranks, t, names);
	f->time = trace__head(t)->realtime;
	for (u32 i = 0; !err && i < ranks.n && f->n < RANKS_MAX; i++) {
		const struct rank_process *r = &ranks.list[i];
		struct found_rank *at = &f->list[f->n];

		if (!is_selected(f->args, r))
			continue;
		*at = (struct found_rank){ r->task->id, r->task->pid, r->rank, r->is_guess, "" };
		snprintf(at->host, sizeof(at->host), "%s", names__host(names, r->task, trace__head(t)->hostname));
		f->n++;
	}
	free(ranks.list);
	names__free(names);
	return err;
}

/* Runs in a child, because a process that reads traces gives up the rights to write files. */
static int find(void *arg)
{
	struct found *f = arg;
	struct inputs in;
	struct trace *t;
	int err;

	if (!inputs__open(&in, f->args->files, f->args->n_files))
		return EXIT_FAILED;
	t = inputs__read(&in, NULL);
	if (!t)
		return EXIT_FAILED;
	err = list(f, t);
	trace__close(t);
	if (err)
		cmd__error("%s: cannot read its ranks: %s", f->args->files[0], cmd__reason(err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* Returns false after printing an error. */
static bool make_folder(const char *path)
{
	char err[512];

	if (!folder__create(path, err, sizeof(err)))
		return true;
	cmd__error("%s", err);
	return false;
}

/* A trace may contain any text: other characters than those of host names could lead to another folder. */
static void write_host(const struct found_rank *r, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strnlen(r->host, sizeof(r->host)), r->host);
	for (char *c = buf; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && (*c != '.' || c == buf))
			*c = '_';
}

static int write_one(const struct export_ranks *x, const struct found *f, const struct found_rank *r)
{
	char folder[4096], name[4400], pid[16], host[64];
	char *argv[16 + 64] = { (char *)"sonde",
				(char *)"export",
				(char *)"--to",
				(char *)"kineto",
				(char *)"--event",
				pid,
				(char *)(x->force ? "-fo" : "-o"),
				name };
	u32 n = 8;
	int status;

	snprintf(pid, sizeof(pid), "%u", r->id);
	if (snprintf(folder, sizeof(folder), "%srank_%u", x->folder, r->rank) >= (int)sizeof(folder)) {
		cmd__error("%s: the path is too long", x->folder);
		return EXIT_FAILED;
	}
	write_host(r, host, sizeof(host));
	snprintf(name, sizeof(name), "%s/%s_%u.%llu.pt.trace.json", folder, host, r->pid, f->time);
	if (x->time) {
		argv[n++] = (char *)"--time";
		argv[n++] = (char *)x->time;
	}
	argv[n++] = (char *)"--";
	for (u32 i = 0; i < x->n_files; i++)
		argv[n++] = x->files[i];
	if (!make_folder(folder))
		return EXIT_FAILED;
	status = subcommand__run(argv, NULL);
	if (status == EXIT_DONE)
		fprintf(stderr, "sonde: rank %u: %s\n", r->rank, name);
	return status;
}

static int write_all(const struct export_ranks *x, const struct found *f)
{
	int status = EXIT_DONE;
	bool is_guess = false;

	if (!f->n) {
		cmd__error(
			"%s: no process of distributed training was recorded or is selected, neither with a rank nor with collectives; `--to kineto -p PID -o OUT` writes one process",
			x->files[0]);
		return EXIT_FAILED;
	}
	if (!make_folder(x->folder))
		return EXIT_FAILED;
	for (u32 i = 0; i < f->n && status == EXIT_DONE; i++) {
		is_guess |= f->list[i].is_guess;
		status = write_one(x, f, &f->list[i]);
	}
	if (is_guess)
		cmd__error(
			"the launcher set no ranks (RANK and WORLD_SIZE): they are guessed by the order in which the processes started");
	return status;
}

int export_ranks__write(const struct export_ranks *x)
{
	struct found *f;
	int status;

	if (x->n_files > 64)
		return cmd__usage("export", "-o DIR/ takes at most 64 traces");
	/* cppcheck-suppress invalidFunctionArg */
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f == MAP_FAILED) {
		cmd__error("out of memory");
		return EXIT_FAILED;
	}
	f->args = x;
	status = subcommand__call(find, f, NULL);
	/* the process that reads the trace may have been taken over by it */
	f->n = f->n < RANKS_MAX ? f->n : RANKS_MAX;
	if (status == EXIT_DONE)
		status = write_all(x, f);
	munmap(f, sizeof(*f));
	return status;
}
