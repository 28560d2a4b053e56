// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the subcommand and runs it; what they are is in user/cmd/. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

REGISTRY(command, sonde_commands);

static int by_order(const void *a, const void *b)
{
	const struct command *x = a, *y = b;

	return x->order == y->order ? strcmp(x->name, y->name) : x->order - y->order;
}

static void help(FILE *out)
{
	const struct command *c = NULL;

	fputs("sonde attaches to what already runs on this machine and shows where the time goes:\n"
	      "the CUDA API, NCCL, Python's GIL, the operating system. No process is restarted.\n"
	      "\n"
	      "Usage: sonde COMMAND [ARGUMENTS]\n"
	      "\n",
	      out);
	while ((c = REGISTRY_NEXT(sonde_commands, c, by_order)))
		fprintf(out, "  %-8s  %s\n", c->name, c->doc);
	fputs("\n"
	      "Examples:\n"
	      "  sudo sonde record -o run.sonde -d 10    trace this machine for ten seconds\n"
	      "  sonde report run.sonde                  what happened in it\n"
	      "\n"
	      "'sonde COMMAND --help' describes a command.\n",
	      out);
}

#define NAME_MAX_ 16

/* How many letters of one name have to be added, removed or replaced to make the other (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_ + 1], n = strlen(b);

	if (strlen(a) > NAME_MAX_ || n > NAME_MAX_)
		return NAME_MAX_;
	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0]++;

		for (size_t k = 1; k <= n; k++) {
			size_t replaced = diagonal + (a[i] != b[k - 1]);
			size_t other = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;

			diagonal = row[k];
			row[k] = replaced < other ? replaced : other;
		}
	}
	return row[n];
}

/* The command whose name was probably meant; NULL: none is similar. */
static const struct command *similar(const char *name)
{
	const struct command *c = NULL, *best = NULL;

	while ((c = REGISTRY_NEXT(sonde_commands, c, NULL)))
		if (distance(name, c->name) <= 2 && (!best || distance(name, c->name) < distance(name, best->name)))
			best = c;
	return best;
}

/* A closed 0, 1 or 2 must not become the trace's descriptor: messages would go into it. */
static bool standard_files(void)
{
	/* each opened the wrong way round, so that its use still is an error */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	const struct command *c;
	char name[64];
	int status;

	/* `sonde report ... | head` ends by a failed write, not by a signal */
	cmd__inherited_sigpipe = signal(SIGPIPE, SIG_IGN);
	/* a file that may not become larger (RLIMIT_FSIZE) is a failed write with a message */
	cmd__inherited_sigxfsz = signal(SIGXFSZ, SIG_IGN);
	if (!standard_files())
		return EXIT_FAILED;
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
		help(stdout);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("sonde " SONDE_VERSION);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "help")) {
		argv[1] = argv[2];
		argv[2] = (char *)"--help";
	}
	c = REGISTRY_FIND(sonde_commands, argv[1]);
	if (!c) {
		c = similar(argv[1]);
		return c ? cmd__usage(NULL, "there is no command '%s'; did you mean '%s'?", argv[1], c->name) :
			   cmd__usage(NULL, "there is no command '%s'", argv[1]);
	}
	/* getopt_long begins its messages with it */
	snprintf(name, sizeof(name), "sonde %s", c->name);
	argv[1] = name;
	status = c->run(argc - 1, argv + 1);
	return c->names_refused ? status : cmd__check_calls(status);
}
