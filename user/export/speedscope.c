// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes speedscope's own format (https://www.speedscope.app/file-format-schema.json): functions once, then a profile
 * for each kind of event with the distinct stacks and what was spent in each. Its "time order" is therefore the tree's
 * order: a browser could not handle millions of single samples.
 */
#include <errno.h>
#include <string.h>

#include "export/profiles.h"
#include "output/json_writer.h"

struct writing {
	struct export *e;
	bool weights; /* writes the weights; false: the stacks */
	u32 n;
};

static void put_frames(FILE *out, const struct call_functions *f)
{
	for (u32 i = 0; i < f->n; i++) {
		const struct call_function *function = &f->list[i];

		fprintf(out, "%s\n{\"name\":", i ? "," : "");
		json__print_text(out, function->name, strlen(function->name));
		if (*function->file) {
			fputs(",\"file\":", out);
			json__print_text(out, function->file, strlen(function->file));
		}
		if (function->first_line)
			fprintf(out, ",\"line\":%u", function->first_line);
		putc('}', out);
	}
}

static int put_sample(const struct call_node *path[], u32 n, void *arg)
{
	struct writing *w = arg;
	FILE *out = w->e->out;

	fputs(w->n++ ? "," : "", out);
	if (w->weights) {
		fprintf(out, "%llu", path[n - 1]->self);
		return 0;
	}
	for (u32 i = 0; i < n; i++)
		fprintf(out, "%c%u", i ? ',' : '[', path[i]->function);
	putc(']', out);
	return ferror(out) ? -EIO : 0;
}

static int put_profile(struct export *e, const struct stack_profile *p)
{
	struct writing w = { .e = e };
	int err;

	fputs("\n{\"type\":\"sampled\",\"name\":", e->out);
	json__print_text(e->out, p->kind.title, strlen(p->kind.title));
	fprintf(e->out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%llu,\"samples\":[",
		p->in_ns ? "nanoseconds" : "none", p->total);
	err = call_tree__each(&p->tree, put_sample, &w);
	fputs("],\"weights\":[", e->out);
	w = (struct writing){ .e = e, .weights = true };
	if (!err)
		err = call_tree__each(&p->tree, put_sample, &w);
	fputs("]}", e->out);
	return err;
}

static int put_file(struct export *e, const struct profiles *p)
{
	int err = 0;
	u32 n = 0;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"sonde@" SONDE_VERSION
	      "\",\"name\":",
	      e->out);
	json__print_text(e->out, e->facts->file, strlen(e->facts->file));
	fputs(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[", e->out);
	put_frames(e->out, &p->functions);
	fputs("]},\"profiles\":[", e->out);
	for (u32 i = 0; !err && i < p->n; i++) {
		if (!p->list[i].events)
			continue;
		fputs(n++ ? "," : "", e->out);
		err = put_profile(e, &p->list[i]);
	}
	fputs("]}\n", e->out);
	return err ? err : ferror(e->out) ? -EIO : 0;
}

static int end(struct export *e)
{
	return profiles__end(e, false, put_file);
}

EXPORTER(speedscope) = {
	.name = "speedscope",
	.doc = "stacks for https://www.speedscope.app: on-CPU, off-CPU, GIL wait and blame, PyTorch",
	.check = profiles__check,
	.begin = profiles__begin,
	.rows = profiles__rows,
	.end = end,
};
