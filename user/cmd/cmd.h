/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subcommand: one file here that fills a struct command and registers it.
 * Errors are printed here and in no other directory: to stderr, with what,
 * which, why and what to do.
 */
#ifndef SONDE_CMD_CMD_H
#define SONDE_CMD_CMD_H

#include <stdio.h>

#include "core/types.h"

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2, /* the command line makes no sense */
	EXIT_PARTLY = 3, /* done, but a requested part could not be attached */
};

struct command {
	const char *name;
	const char *doc; /* one line for `sonde --help` */
	int order; /* place in it */
	bool names_refused; /* it reports itself which system call its filter refused */
	/* argv[0] is "sonde NAME"; returns the exit status */
	int (*run)(int argc, char **argv);
};

/* Registered by address in a section of their own: a new command touches no list. */
#define COMMAND(ident)                                                                                              \
	static const struct command ident;                                                                          \
	static const struct command *const ident##_entry __attribute__((used, section("sonde_commands"))) = &ident; \
	static const struct command ident

/* What SIGPIPE and SIGXFSZ were when sonde was started, before they were ignored: a command that sonde runs gets them back. */
extern void (*cmd__inherited_sigpipe)(int), (*cmd__inherited_sigxfsz)(int);
/* "sonde: ..." with a newline to stderr */
void cmd__error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same and how to get help; returns EXIT_USAGE. */
int cmd__usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Why reading a trace failed, for a message: strerror's text, or for -ENOMEM the limit of memory that was reached and
 * what to do.
 */
const char *cmd__reason(int err);
/*
 * Returns status; or, if the process's filter refused a system call, prints an error that names the call and
 * returns EXIT_FAILED.
 */
int cmd__check_calls(int status);

struct trace;
/* The traces of a command line: opened, and not yet read. */
struct inputs {
	char *const *paths;
	u32 n;
	int *fds;
	int merged; /* several as one: a file without a name that they are merged in; else -1 */
	bool sources; /* what reads them opens files that they name */
};
/* false: said why not. */
bool inputs__open(struct inputs *in, char *const *paths, u32 n);
/*
 * Reads them, several as one (model/merge.h), or says why not; NULL then. Before that the process gives up all rights
 * for good, and root: a trace may come from anywhere. Of each further machine notes, if not NULL, gets a line, by
 * which its processes are known; malloc'ed. Frees the inputs.
 */
struct trace *inputs__read(struct inputs *in, char **notes);
void inputs__close(struct inputs *in);
struct output_options;
/* --format; false: said that there is no such. */
bool cmd__parse_format(const char *command, const char *value, struct output_options *options);
/* Colours only where a person sees them and has not set NO_COLOR. */
bool cmd__color(FILE *file);
/* A number from 1 (a pid); false: said what is wrong. */
bool cmd__parse_number(const char *command, const char *option, const char *value, u64 min, u64 max, u64 *out);
struct report_output;
/* Prints to stdout; returns the exit status. */
int cmd__print(const struct report_output *out, const struct output_options *options);

#endif
