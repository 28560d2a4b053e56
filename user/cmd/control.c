// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `sonde control`: requests to a running recording. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "output/text.h"
#include "record/control.h"
#include "util/array.h"

#define ANSWER_MS 10000 /* attaching the probes of a family takes some tenths of a second */

static const char help[] =
	"Usage: sonde control PID pause|resume\n"
	"       sonde control PID mark TEXT\n"
	"       sonde control PID --trace +FAMILY,-FAMILY,..\n"
	"\n"
	"Controls a recording that runs: PID is the process `sonde record` (with --report the child of it).\n"
	"\n"
	"  pause       nothing is recorded until `resume`, as with SIGUSR2 and SIGUSR1; possible also where a\n"
	"              command gets these signals. Not with --schedule and --capture-range\n"
	"  mark TEXT   adds an event meta_mark with this text, of at most 511 bytes, to the trace\n"
	"  -t, --trace FAMILIES  switches families off (-FAMILY) and on again (+FAMILY): their probes are detached,\n"
	"              and attached. cuda, cudadrv, nccl and torch, if the recording began with them (record -t);\n"
	"              a warning in the trace states when each was off\n"
	"\n"
	"Only root and the user who started the recording may do this.\n"
	"\n"
	"Exit status: 0 done; 1 failed or refused, as a message says; 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  sudo sonde control $(pgrep -xo sonde) pause\n"
	"  sudo sonde control 4711 mark 'second epoch'\n"
	"  sudo sonde control 4711 --trace -cuda,-nccl\n";

/* Sends the request and waits for the answer of that process. Returns 0 or negative errno. */
static int ask(u32 pid, const struct control_request *r, struct control_answer *a)
{
	int sock = control__socket(0), err = sock < 0 ? sock : 0;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct control_message m;
	struct sockaddr_un to;
	socklen_t len = control__address(&to, pid);

	if (!err && sendto(sock, r, sizeof(*r), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0)
		err = -errno;
	while (!err) {
		err = poll(&p, 1, ANSWER_MS) == 1 ? 0 : -ETIMEDOUT;
		if (err || (!control__receive(sock, a, sizeof(*a), &m) && m.sender.pid == (pid_t)pid))
			break;
	}
	if (sock >= 0)
		close(sock);
	return err;
}

static int print_result(u32 pid, int err, struct control_answer *a)
{
	char *clean;

	if (err == -ECONNREFUSED)
		cmd__error("process %u is no recording that this sonde can control", pid);
	else if (err)
		cmd__error("process %u: %s", pid, err == -ETIMEDOUT ? "the recording does not answer" : strerror(-err));
	if (err || !a->error)
		return err ? EXIT_FAILED : EXIT_DONE;
	clean = text__clean(a->text, strnlen(a->text, sizeof(a->text)));
	cmd__error("process %u: %s", pid, clean && *clean ? clean : strerror(-a->error));
	free(clean);
	return EXIT_FAILED;
}

static int refuse_usage(const char *what)
{
	cmd__usage("control", "%s", what);
	return EXIT_USAGE;
}

static int cmd_control(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum control_what what;
		bool has_text;
	} known[] = { { "pause", CONTROL_PAUSE, false },
		      { "resume", CONTROL_RESUME, false },
		      { "mark", CONTROL_MARK, true },
		      { "--trace", CONTROL_TRACE, true },
		      { "-t", CONTROL_TRACE, true } };
	struct control_request r = { .version = CONTROL_VERSION };
	struct control_answer a = {};
	char *end;
	unsigned long pid;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, stdout);
			return EXIT_DONE;
		}
	if (argc < 3)
		return refuse_usage("a process and a request are needed");
	pid = strtoul(argv[1], &end, 10);
	if (*argv[1] < '0' || *argv[1] > '9' || *end || !pid || pid > 0x7fffffff)
		return refuse_usage("the first argument is the number of a process");
	for (u32 i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(argv[2], known[i].name) && argc == 3 + known[i].has_text)
			r.what = known[i].what;
	if (!r.what)
		return refuse_usage("the request is pause, resume, mark TEXT, or --trace FAMILIES");
	if (argc > 3 && strlen(argv[3]) >= sizeof(r.text))
		return refuse_usage("the text is too long");
	snprintf(r.text, sizeof(r.text), "%s", argc > 3 ? argv[3] : "");
	return print_result((u32)pid, ask((u32)pid, &r, &a), &a);
}

COMMAND(control_command) = {
	.name = "control",
	.doc = "pause, resume or mark a recording that runs, or switch its families",
	.order = 16,
	.run = cmd_control,
};
