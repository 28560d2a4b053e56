/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subcommand is one file here, which fills a struct command and registers it. Only this directory prints errors: to
 * stderr, with what failed, on which object, why, and what to do.
 */
#pragma once

#include <stdio.h>

#include "core/types.h"
#include "util/registry.h"

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2, /* wrong usage */
	EXIT_PARTLY = 3, /* done, but a requested part could not be attached */
};

struct command {
	const char *name;
	const char *doc; /* one line for `sonde --help` */
	int order; /* position in that list */
	bool names_refused; /* the command itself reports a system call that its filter refused */
	/* argv[0] is "sonde NAME"; returns the exit status */
	int (*run)(int argc, char **argv);
};

#define COMMAND(ident) REGISTER(command, sonde_commands, ident)

/* Handlers of SIGPIPE and SIGXFSZ from before sonde ignored them, which a command that sonde runs gets back. */
extern void (*cmd__inherited_sigpipe)(int), (*cmd__inherited_sigxfsz)(int);
/* Prints "sonde: ..." and a newline to stderr. */
void cmd__error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error and a hint to --help; returns EXIT_USAGE. */
int cmd__usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns why reading a trace failed: strerror's text or, for -ENOMEM, the memory limit and what to do. */
const char *cmd__reason(int err);
/* Returns status or, if the process's seccomp filter refused a system call, EXIT_FAILED after printing which call. */
int cmd__check_calls(int status);

struct trace;
/* The traces that a command line names, opened but not yet read. */
struct inputs {
	char *const *paths;
	u32 n;
	int *fds;
	int merged; /* unnamed file into which several traces are merged; -1: none */
	bool sources; /* the report opens source files that the traces name */
};
/*
 * In this process and in its later children, the input of this path is the file behind the descriptor, which was
 * written: another user may have put another file at the path meanwhile.
 */
void inputs__use_file(const char *path, int fd);
/* Returns false after printing why. */
bool inputs__open(struct inputs *in, char *const *paths, u32 n);
/*
 * Reads the traces, several merged into one (model/merge.h); returns NULL after printing why. Gives up root and all
 * rights before, for good, since a trace may come from anywhere. *notes, if requested, is malloc'ed: a line for each
 * further machine on how its processes are numbered. Frees the inputs.
 */
struct trace *inputs__read(struct inputs *in, char **notes);
/* The same of traces that are not merged: traces[i] is NULL from the first on that can't be read. */
bool inputs__open_each(struct inputs *in, char *const *paths, u32 n);
bool inputs__read_each(struct inputs *in, struct trace **traces);
void inputs__close(struct inputs *in);
struct output_options;
/* Parses the value of --format; returns false after printing an error. */
bool cmd__parse_format(const char *command, const char *value, struct output_options *options);
/* Characters of a line of a report that goes to no terminal */
#define CMD_WIDTH 120
/* Colours and the width of the lines: those of the terminal, if standard output is one and people read it. */
void cmd__fit_terminal(struct output_options *options);
/* Parses a number; returns false after printing an error. */
bool cmd__parse_number(const char *command, const char *option, const char *value, u64 min, u64 max, u64 *out);
struct report_output;
/* Prints to stdout; returns the exit status. */
int cmd__print(const struct report_output *out, const struct output_options *options);
