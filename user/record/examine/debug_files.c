// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens debug files with the symbols of stripped objects, requested by the process that parses the object. */
#include "attach/fetcher.h"
#include "record/discover/objects.h"
#include "record/discover/shares.h"
#include "record/parts.h"

#include <errno.h>
#include <string.h>

static bool is_build_id(const char *text)
{
	size_t len = strlen(text);

	return len >= 4 && len <= 128 && strspn(text, "0123456789abcdef") == len;
}

int object__open_debug(struct session *s, const struct object *o, bool server, bool own_root, const char *text)
{
	u32 account;
	int fd;

	if (server)
		return s->fetcher && is_build_id(text) ?
			       fetcher__fetch(s->fetcher, text, s->args->stop, drain__on_idle, s) :
			       -EINVAL;
	if (*text != '/' || (own_root && !o->pid))
		return -EINVAL;
	account = o->pid ? shares__user(s, o->pid) : 0;
	if (!hung__may_ask(s, account, true))
		return -EBUSY;
	fd = attacher__open_debug(s->attacher, own_root ? o->pid : 0, text, o->fd);
	if (fd == -ETIMEDOUT)
		hung__note(s, account);
	return fd;
}
