/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a command of sonde in a process of its own, because a recording and a report give up different rights. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/*
 * Calls run(arg) in a child, which exits with what it returns, and waits for its end. Signals that end a recording are
 * passed on to the child. Returns its exit status, 128 + N if signal N ended it. *file gets the descriptor of the file
 * that the child has recorded, -1: none; NULL: it is not needed.
 */
int subcommand__call(int (*run)(void *arg), void *arg, int *file);
/* Runs a command of this program in such a child: argv[1] is its name, NULL ends the arguments. */
int subcommand__run(char **argv, int *file);
/* In the child: passes the file that it has recorded to the parent, if that needs it. */
void subcommand__pass_file(int fd);

/*
 * In a signal handler of the child: is this signal a copy? A signal to the process group arrives from its sender and
 * from the parent, which passes it on, in either order.
 */
bool subcommand__is_copy(int sig, const siginfo_t *info);
/* In the child: has the parent ended? Always false in other processes. */
bool subcommand__is_orphan(void);
