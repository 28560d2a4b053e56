// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record/warnings.h"

#include "record/discover/shares.h"
#include "record/parts.h"
#include "util/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRSTS_MAX 256

/* Those from before the trace is created are of the options, or are stored as refused programs. */
static void write_warning(struct session *s, const char *text)
{
	struct meta_warning e = { .event = session__event(s, ID_meta_warning) };

	if (!s->writer || s->warnings.n_written++ >= WARNINGS_MAX)
		return;
	e.text = session__intern(s, text);
	session__emit(s, &e, sizeof(e));
}

/* A warning is one line: a name with a line end must not look like another one. */
static void __attribute__((format(printf, 2, 0))) add_warning(struct session *s, const char *fmt, va_list ap)
{
	struct warnings *w = &s->warnings;
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	for (char *end; (end = strchr(text, '\n')) != NULL;)
		*end = '?';
	write_warning(s, text);
	if (!array__push(w->texts, w->n, text))
		free(text);
}

bool warnings__is_first(struct warnings *w, u32 account, enum first_of what)
{
	for (u32 i = 0; i < w->n_firsts; i++)
		if (w->firsts[i].account == account && w->firsts[i].what == what)
			return false;
	return w->n_firsts < FIRSTS_MAX && array__push(w->firsts, w->n_firsts, ((struct first){ account, what }));
}

void session__warn(struct session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_warning(s, fmt, ap);
	va_end(ap);
}

void session__warn_of(struct session *s, u32 account, const char *fmt, ...)
{
	va_list ap;

	if (!shares__may_warn(s, account))
		return;
	va_start(ap, fmt);
	add_warning(s, fmt, ap);
	va_end(ap);
}

char *session__next_warning(struct session *s)
{
	struct warnings *w = &s->warnings;
	char *text;

	if (w->next == w->n)
		return NULL;
	text = w->texts[w->next++];
	if (w->next == w->n)
		w->next = w->n = 0;
	return text;
}

void warnings__free(struct warnings *w)
{
	for (u32 i = w->next; i < w->n; i++)
		free(w->texts[i]);
	free(w->texts);
	free(w->firsts);
}
