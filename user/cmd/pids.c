// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Parses process ids in every form in which pgrep and pidof print them. */
#include "cmd/pids.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"

#define PID_MAX 0x7fffffff

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static bool has_pid(const struct pid_list *pids, u32 pid)
{
	for (u32 i = 0; i < pids->n; i++)
		if (pids->list[i] == pid)
			return true;
	return false;
}

/* Does the text consist of process ids only? */
static bool is_list(const char *text)
{
	bool digit = false;

	for (; *text; text++) {
		digit |= isdigit((unsigned char)*text) != 0;
		if (!isdigit((unsigned char)*text) && !isspace((unsigned char)*text) && *text != ',')
			return false;
	}
	return digit;
}

bool pid_list__add(struct pid_list *pids, const char *command, const char *option, const char *text)
{
	const char *p = skip_space(text);

	if (!*p) {
		cmd__usage(command, "%s names no process", option);
		return false;
	}
	while (*p) {
		const char *from = p;
		unsigned long pid;
		char *end;

		errno = 0;
		pid = strtoul(p, &end, 10);
		p = skip_space(end);
		if (!isdigit((unsigned char)*from) || errno || !pid || pid > PID_MAX ||
		    (*end && *end != ',' && p == end)) {
			cmd__usage(command, "%s needs process ids, separated by commas or spaces, not '%s'", option,
				   from);
			return false;
		}
		if (*p == ',') {
			p = skip_space(p + 1);
			if (!*p) {
				cmd__usage(command, "%s needs a process id after each comma", option);
				return false;
			}
		}
		if (has_pid(pids, (u32)pid))
			continue;
		if (pids->n == PIDS_MAX) {
			cmd__usage(command, "at most %u processes", PIDS_MAX);
			return false;
		}
		pids->list[pids->n++] = (u32)pid;
	}
	return true;
}

bool pid_list__add_option(struct pid_list *pids, const char *command, char **argv)
{
	if (!pid_list__add(pids, command, "-p", optarg))
		return false;
	for (; argv[optind] && is_list(argv[optind]); optind++)
		if (!pid_list__add(pids, command, "-p", argv[optind]))
			return false;
	return true;
}
