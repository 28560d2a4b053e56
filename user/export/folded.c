// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes Brendan Gregg's folded stacks, which flamegraph.pl, inferno and speedscope read: "python3 4711;main
 * (app.py);load (app.py) 1234" per line. Times are ns.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/frame_text.h"
#include "export/profiles.h"

struct writing {
	struct export *e;
	const struct call_function *functions;
	char **texts; /* of each function, made at its first use */
};

/* Returns a function's text without ';', which separates frames. */
static const char *text_of(const struct writing *w, u32 function)
{
	char **text = &w->texts[function];

	if (!*text) {
		*text = frame_text__function(&w->functions[function]);
		for (char *p = *text; p && *p; p++)
			if (*p == ';')
				*p = ':';
	}
	return *text ? *text : "?";
}

static int put_line(const struct call_node *path[], u32 n, void *arg)
{
	const struct writing *w = arg;

	if (!path[n - 1]->self)
		return 0;
	for (u32 i = 0; i < n; i++) {
		if (i)
			putc(';', w->e->out);
		fputs(text_of(w, path[i]->function), w->e->out);
	}
	fprintf(w->e->out, " %llu\n", path[n - 1]->self);
	return ferror(w->e->out) ? -EIO : 0;
}

static int put_file(struct export *e, const struct profiles *p)
{
	struct writing w = { e, p->functions.list, calloc(p->functions.n + 1, sizeof(*w.texts)) };
	const struct stack_profile *first = profiles__first(p);
	int err = w.texts ? 0 : -ENOMEM;

	if (first && !err)
		err = call_tree__each(&first->tree, put_line, &w);
	for (u32 i = 0; w.texts && i < p->functions.n; i++)
		free(w.texts[i]);
	free(w.texts);
	return err;
}

static int end(struct export *e)
{
	return profiles__end(e, true, put_file);
}

EXPORTER(folded) = {
	.name = "folded",
	.doc = "folded stacks, for flamegraph.pl and others: --event on-cpu, off-cpu, gil-wait, gil-blame, torch",
	.check = profiles__check,
	.begin = profiles__begin,
	.rows = profiles__rows,
	.end = end,
};
