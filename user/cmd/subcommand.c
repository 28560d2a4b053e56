// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/subcommand.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "sandbox/message.h"
#include "util/array.h"
#include "util/timing.h"

/* Two signals of a pair, one from the sender and one from the parent, arrive within this time of each other. */
#define COPY_NS 1000000000ULL

REGISTRY(command, sonde_commands);

static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
static volatile sig_atomic_t child;
static pid_t parent; /* set in the child only */
static int to_parent = -1; /* socket of a child from which the parent needs a file */

static void pass_on(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	/* The terminal has sent its signals to the child too, which is in the same process group. */
	if (child > 0 && info->si_code != SI_KERNEL)
		kill(child, sig);
	errno = saved;
}

bool subcommand__is_copy(int sig, const siginfo_t *info)
{
	static struct {
		u64 time; /* when a signal without a copy so far arrived; 0: none */
		bool by_parent;
	} last[65];
	bool by_parent = info->si_code == SI_USER && info->si_pid == parent;
	u64 now = timing__now();

	if (!parent)
		return false;
	if (last[sig].time && last[sig].by_parent != by_parent && now - last[sig].time < COPY_NS) {
		last[sig].time = 0;
		return true;
	}
	last[sig].time = now;
	last[sig].by_parent = by_parent;
	return false;
}

bool subcommand__is_orphan(void)
{
	return parent && getppid() != parent;
}

static void handle_signals(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_RESTART, .sa_sigaction = handler }, before;

	if (!handler)
		sa = (struct sigaction){ .sa_handler = SIG_DFL };
	for (u32 i = 0; i < ARRAY_LEN(passed); i++)
		/* nohup made it ignored. */
		if (sigaction(passed[i], NULL, &before) || before.sa_handler != SIG_IGN)
			sigaction(passed[i], &sa, NULL);
}

static void block_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (u32 i = 0; i < ARRAY_LEN(passed); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

void subcommand__pass_file(int fd)
{
	if (to_parent >= 0)
		message__send_now(to_parent, "", 1, fd);
}

/* Receives what the child, which has ended, passed on; a descriptor or -1. */
static int receive_file(int sock)
{
	int fd = -1;
	char byte;

	if (message__pending(sock))
		message__receive(sock, &byte, sizeof(byte), &fd);
	return fd;
}

/* The child itself: does not return. */
static void be_child(int (*run)(void *arg), void *arg, pid_t self, const sigset_t *signals)
{
	parent = self;
	handle_signals(NULL);
	sigprocmask(SIG_SETMASK, signals, NULL);
	/* The kernel clears this if the child changes its user; a recording also polls subcommand__is_orphan(). */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || subcommand__is_orphan())
		_exit(EXIT_FAILED);
	exit(run(arg));
}

int subcommand__call(int (*run)(void *arg), void *arg, int *file)
{
	int status = 0, sockets[2] = { -1, -1 };
	pid_t self = getpid(), pid;
	sigset_t before;

	if (file && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		cmd__error("cannot make a socket: %s", strerror(errno));
		return EXIT_FAILED;
	}
	/* Signals stay pending until the child's pid is known. */
	block_signals(&before);
	handle_signals(pass_on);
	pid = fork();
	if (!pid) {
		to_parent = sockets[1];
		if (file)
			close(sockets[0]);
		be_child(run, arg, self, &before);
	}
	child = pid > 0 ? pid : 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		cmd__error("cannot fork: %s", strerror(errno));
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	if (file) {
		close(sockets[1]);
		*file = receive_file(sockets[0]);
		close(sockets[0]);
	}
	if (pid < 0)
		return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs in the child. */
static int run_command(void *arg)
{
	char **argv = arg, name[64];
	const struct command *c = REGISTRY_FIND(sonde_commands, argv[1]);
	int argc = 0, status;

	if (!c) {
		cmd__error("this build has no command '%s'", argv[1]);
		return EXIT_FAILED;
	}
	/* getopt_long begins its messages with this name. */
	snprintf(name, sizeof(name), "sonde %s", c->name);
	argv[1] = name;
	while (argv[argc + 1])
		argc++;
	/* getopt_long starts anew. */
	optind = 0;
	status = c->run(argc, argv + 1);
	return c->names_refused ? status : cmd__check_calls(status);
}

int subcommand__run(char **argv, int *file)
{
	return subcommand__call(run_command, argv, file);
}
