// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/status_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool disabled;

void status_line__disable(void)
{
	disabled = true;
}

bool status_line__is_shown(void)
{
	return !disabled && isatty(STDERR_FILENO);
}

void status_line__set(const char *format, ...)
{
	struct winsize size = { .ws_col = 80 };
	char text[640];
	va_list ap;

	if (!status_line__is_shown())
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1 && strlen(text) >= size.ws_col)
		text[size.ws_col - 1] = '\0';
	fprintf(stderr, "\r\033[K%s", text);
}
