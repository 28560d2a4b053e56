// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/pager.h"
#include "output/table.h"
#include "output/text.h"
#include "sandbox/memory_limit.h"
#include "sandbox/syscalls.h"
#include "util/array.h"

void (*cmd__inherited_sigpipe)(int) = SIG_DFL, (*cmd__inherited_sigxfsz)(int) = SIG_DFL;

static void print_error(const char *format, va_list args)
{
	char *clean, *line;

	if (vasprintf(&line, format, args) < 0)
		return;
	/*
	 * Paths and texts of a damaged trace may have any bytes, so each line is cleaned; the format's line ends stay.
	 */
	fputs("sonde: ", stderr);
	for (char *next, *part = line; part; part = next) {
		next = strchr(part, '\n');
		if (next)
			*next++ = '\0';
		clean = text__clean(part, strlen(part));
		fprintf(stderr, "%s\n%s", clean ? clean : "?", next ? "       " : "");
		free(clean);
	}
	free(line);
}

void cmd__error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
}

int cmd__usage(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
	fprintf(stderr, "Try 'sonde %s%s--help'.\n", command ? command : "", command ? " " : "");
	return EXIT_USAGE;
}

const char *cmd__reason(int err)
{
	static char text[320];
	u64 inherited = memory_limit__inherited(), limit = memory_limit__bytes();

	if (err == -ENOMEM && inherited != RLIM_INFINITY && (!limit || inherited <= limit)) {
		snprintf(
			text, sizeof(text),
			"it takes more than the %llu MiB of memory that sonde was started with\nraise that limit (`ulimit -d` "
			"and `ulimit -v`)",
			inherited >> 20);
		return text;
	}
	if (err != -ENOMEM || !limit)
		return strerror(-err);
	if (memory_limit__is_machines()) {
		snprintf(
			text, sizeof(text),
			"it takes more than %llu MiB of memory, sonde's limit on this machine, which has little more available\n"
			"read a part of it (--time, -p), or close programs that use much memory",
			memory_limit__bytes() >> 20);
		return text;
	}
	snprintf(
		text, sizeof(text),
		"it takes more than %llu MiB of memory: sonde limits the memory by the size of the file, because a file may be "
		"made to exhaust it\nread a part of it (--time, -p)",
		memory_limit__bytes() >> 20);
	return text;
}

int cmd__check_calls(int status)
{
	int number = syscalls__refused();
	char name[64];

	if (number < 0)
		return status;
	cmd__error(
		"the filter of system calls refused %s to sonde: a bug in sonde, or an attack through the data that it reads; "
		"what was printed or written may be incomplete",
		syscalls__name(number, name, sizeof(name)));
	return EXIT_FAILED;
}

bool cmd__parse_format(const char *command, const char *value, struct output_options *options)
{
	static const char *const names[] = { [OUTPUT_TABLE] = "table", [OUTPUT_CSV] = "csv", [OUTPUT_JSON] = "json" };
	u32 i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(value, names[i])) {
			options->format = (enum output_format)i;
			return true;
		}
	}
	cmd__usage(command, "there is no format '%s': it is table, csv or json", value);
	return false;
}

/* May output to the file have colours? Only on a terminal, and unless NO_COLOR is set. */
static bool has_colors(FILE *file)
{
	const char *no = secure_getenv("NO_COLOR"), *term = secure_getenv("TERM");

	return isatty(fileno(file)) && (!no || !*no) && term && strcmp(term, "dumb");
}

void cmd__fit_terminal(struct output_options *options)
{
	struct winsize size;

	if (options->format != OUTPUT_TABLE)
		return;
	options->color = has_colors(stdout);
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		options->width = size.ws_col;
}

bool cmd__parse_number(const char *command, const char *option, const char *value, u64 min, u64 max, u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno && *out >= min && *out <= max)
		return true;
	cmd__usage(command, "%s needs a number from %llu to %llu, not '%s'", option, min, max, value);
	return false;
}

int cmd__print(const struct report_output *out, const struct output_options *options)
{
	int err;

	pager__printing();
	err = report_output__failed(out) ? -ENOMEM : report_output__print(out, options, stdout);

	/* EPIPE is no error: a reader such as `head` has closed the pipe. */
	if (!err || err == -EPIPE)
		return EXIT_DONE;
	cmd__error("cannot print: %s", cmd__reason(err));
	return EXIT_FAILED;
}
