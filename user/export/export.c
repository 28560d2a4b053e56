// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/export.h"

#include <errno.h>
#include <string.h>

/* made by the linker; weak: a program without an exporter links too */
extern const struct exporter *const __start_sonde_exporters[] __attribute__((weak));
extern const struct exporter *const __stop_sonde_exporters[] __attribute__((weak));

const struct exporter *exporter__find(const char *name)
{
	const struct exporter *const *x;

	for (x = __start_sonde_exporters; x < __stop_sonde_exporters; x++) {
		if (!strcmp((*x)->name, name))
			return *x;
	}
	return NULL;
}

void exporter__each(void (*fn)(const struct exporter *x, void *arg), void *arg)
{
	const struct exporter *const *x, *next, *last = NULL;

	for (;; last = next) {
		next = NULL;
		for (x = __start_sonde_exporters; x < __stop_sonde_exporters; x++) {
			if (last && strcmp((*x)->name, last->name) <= 0)
				continue;
			if (!next || strcmp((*x)->name, next->name) < 0)
				next = *x;
		}
		if (!next)
			return;
		fn(next, arg);
	}
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

/* Exporters find only that a write failed; errno is that write's still, or the next one's. */
static int write_error(struct export *e, int err)
{
	if (err != -EIO || !ferror(e->out))
		return err;
	if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EPIPE)
		errno = fflush(e->out) ? errno : EIO;
	return -errno;
}

int export__run(struct export *e, const struct exporter *x, const struct trace_filter *filter)
{
	struct trace_filter all = { 0 };
	struct pass p = { e, x };
	int err, end;

	errno = 0;
	err = write_error(e, x->begin ? x->begin(e) : 0);
	if (!err)
		err = write_error(e, trace__read(e->trace, filter ? filter : &all, on_rows, &p));
	end = write_error(e, x->end ? x->end(e) : 0);
	return err ? err : end;
}
