// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/export.h"

#include <errno.h>
#include <stdio_ext.h>
#include <string.h>

REGISTRY(exporter, sonde_exporters);

const struct exporter *exporter__find(const char *name)
{
	return REGISTRY_FIND(sonde_exporters, name);
}

void exporter__each(void (*fn)(const struct exporter *x, void *arg), void *arg)
{
	const struct exporter *x = NULL;

	while ((x = REGISTRY_NEXT(sonde_exporters, x, NULL)))
		fn(x, arg);
}

struct pass {
	struct export *export;
	const struct exporter *exporter;
};

static int on_rows(const struct rows *rows, void *arg)
{
	struct pass *p = arg;

	return p->exporter->rows(p->export, rows);
}

/* Exporters return -EIO for a failed write; its errno is still set, or the next write sets it. */
static int write_error(struct export *e, int err)
{
	if (err != -EIO || !ferror(e->out))
		return err;
	if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EPIPE)
		errno = fflush(e->out) ? errno : EIO;
	return -errno;
}

/* Events that are on no time line are exported even if they were recorded in a pause. */
static bool is_on_time_line(const struct schema_event *e)
{
	return e->role != EVENT_LISTS;
}

int export__run(struct export *e, const struct exporter *x, const struct trace_filter *filter)
{
	struct trace_filter all = { 0 };
	struct pass p = { e, x };
	int err, end;

	/* one thread writes: no lock for each character */
	__fsetlocking(e->out, FSETLOCKING_BYCALLER);
	errno = 0;
	all = filter ? *filter : all;
	all.in_windows = is_on_time_line;
	all.pids = e->pids;
	err = write_error(e, x->begin ? x->begin(e) : 0);
	if (!err && x->rows)
		err = write_error(e, trace__read(e->trace, &all, on_rows, &p));
	end = write_error(e, x->end ? x->end(e) : 0);
	return err ? err : end;
}
