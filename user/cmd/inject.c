// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"
#include "cmd/pids.h"
#include "cmd/scope.h"
#include "cmd/shim.h"
#include "inject/inject.h"
#include "sandbox/privileges.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: sonde inject [--force] [--scope user|all] [--remote-files] PID..\n"
	"\n"
	"Loads the library that records GPU work (libsonde-cupti.so) into running processes, so that\n"
	"`sonde record -t gpu -p PID` can record the times of their work on GPUs. In each process one thread that\n"
	"holds no lock is interrupted, calls dlopen and continues; the other threads are not stopped. If a\n"
	"container does not have the library's file, the process gets a copy in memory. The library is inactive\n"
	"while no recording uses it. `sonde record --inject` loads the library, too. A command that\n"
	"`sonde record -t +gpu -- CMD` starts does not need this command.\n"
	"Needs root, or the right to trace the process (its user, where kernel.yama.ptrace_scope is 0).\n"
	"\n"
	"Not supported: static programs, C libraries other than glibc, 32-bit programs, processes that another\n"
	"tool traces (gdb, strace) or that are stopped, and those whose seccomp filter forbids it.\n"
	"\n"
	"  -p, --pid PIDS      the same as PID..\n"
	"      --force         load it even if a seccomp filter can't be read, which may kill the process\n" SCOPE_HELP
	"  -h, --help          this text\n"
	"\n"
	"Exit status: 0 the library is in all of them now, 1 in none of them, 2 wrong usage,\n"
	"3 it is in some of them only.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde inject 4711\n"
	"  sudo sonde inject $(pgrep -f train.py) && sudo sonde record -t +gpu --comm 'python*' -d 10\n"
	"  sudo sonde record --inject -p 4711 -d 10\n";

static bool is_allowed(const struct scope *scope, u32 pid)
{
	char why[512];
	bool allowed = scope__allows(scope, pid, why, sizeof(why));

	if (!allowed)
		cmd__error("%s", why);
	return allowed;
}

static bool inject(u32 pid, const char *shim, const struct inject_options *options)
{
	struct inject_result r;

	inject__process(pid, shim, options, &r);
	if (r.outcome == INJECT_ALREADY) {
		printf("process %u has the library already\n", pid);
		return true;
	}
	if (r.outcome != INJECT_DONE) {
		cmd__error("process %u: %s: %s", pid,
			   r.outcome == INJECT_REFUSED ? "not loaded, and nothing changed" : "could not be loaded",
			   r.why);
		return false;
	}
	printf("process %u: loaded%s; thread %u was used for %.1f ms and stopped for %.1f ms of these; no other thread was stopped\n",
	       pid, r.memfd ? " from memory" : "", r.tid, r.held_ns / 1e6, r.stopped_ns / 1e6);
	if (!r.cuda)
		cmd__error("process %u maps neither libcuda nor libcudart: there is nothing to record until it does",
			   pid);
	return true;
}

static int cmd_inject(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ "pid", required_argument, NULL, 'p' },
		SCOPE_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct pid_list pids = {};
	u32 done = 0;
	char shim[PATH_MAX];
	struct inject_options options = {};
	struct scope scope = {};
	int c, err, taken;

	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "p:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (c == 'p') {
			if (!pid_list__add(&pids, "inject", "-p", optarg))
				return EXIT_USAGE;
			continue;
		}
		taken = scope__option(&scope, "inject", c, optarg);
		if (taken < 0)
			return EXIT_USAGE;
		if (!taken && c != 'f')
			return cmd__usage("inject", "unknown option '%s'", argv[optind - 1]);
		options.force |= !taken;
	}
	for (int i = optind; i < argc; i++)
		if (!pid_list__add(&pids, "inject", "PID", argv[i]))
			return EXIT_USAGE;
	if (!pids.n)
		return cmd__usage("inject", "into which process? `sonde inject PID`");
	if (shim__find(shim, sizeof(shim))) {
		cmd__error("libsonde-cupti.so is neither beside sonde nor in ../lib/sonde");
		return EXIT_FAILED;
	}
	if (!scope__apply_to_processes(&scope, "inject"))
		return EXIT_USAGE;
	options.remote_files = scope.remote_files == ANSWER_YES;
	err = privileges__injector(true);
	if (err) {
		cmd__error("cannot drop privileges: %s", cmd__reason(err));
		return EXIT_FAILED;
	}
	for (u32 i = 0; i < pids.n; i++)
		done += is_allowed(&scope, pids.list[i]) && inject(pids.list[i], shim, &options);
	if (fflush(stdout) || ferror(stdout)) {
		cmd__error("cannot print: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return done == pids.n ? EXIT_DONE : done ? EXIT_PARTLY : EXIT_FAILED;
}

COMMAND(inject_command) = {
	.name = "inject",
	.doc = "load the library that records GPU work into running processes",
	.order = 15,
	.run = cmd_inject,
};
