// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Symbols that an object was stripped of. */
#include "record/objects.h"

#include "attach/debug.h"

#include <string.h>

struct opener {
	struct session *s;
	const struct object *o;
};

static void on_idle(void *arg)
{
	drain__keep(((struct opener *)arg)->s);
}

static int open_debug(u32 pid, const char *path, void *arg)
{
	const struct opener *opener = arg;

	return attacher__open_debug(opener->s->attacher, pid, path, opener->o->fd);
}

bool object__add_debug(struct session *s, struct object *o)
{
	struct opener opener = { s, o };
	struct debug_search search = {
		.pid = o->pid,
		.path = o->path,
		.fetcher = s->fetcher,
		.stop = s->args->stop,
		.open = open_debug,
		.idle = on_idle,
		.arg = &opener,
	};
	char why[512];

	if (o->debug_sought || !elf__stripped(o->elf))
		return false;
	o->debug_sought = true;
	if (!debug__add(o->elf, &search, why, sizeof(why)))
		return true;
	if (*why)
		session__warn(s, "%s: %s", o->path, why);
	return false;
}
