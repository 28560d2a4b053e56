// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Targets choose the names: a few bytes can expand to gigabytes, so the output is taken in parts and given up when too
 * long. longjmp leaks nothing: the demangler's callback form allocates only on the stack.
 */
#include "model/demangle.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_part(const char *part, size_t len, void *arg)
{
	struct demangled *d = arg;

	if (len >= sizeof(d->text) - d->len)
		longjmp(d->too_long, 1);
	memcpy(d->text + d->len, part, len);
	d->len += len;
	d->text[d->len] = '\0';
}

bool demangle(struct demangled *d, const char *mangled, int options)
{
	d->len = 0;
	d->text[0] = '\0';
	if (setjmp(d->too_long))
		return false;
	return cplus_demangle_v3_callback(mangled, options, write_part, d) && d->len;
}

/* Rust's own mangling, and that of C++ with a hash as the last part, which is left out. */
static bool demangle_rust(struct demangled *d, const char *mangled)
{
	d->len = 0;
	d->text[0] = '\0';
	if (setjmp(d->too_long))
		return false;
	return rust_demangle_callback(mangled, DMGL_NO_OPTS, write_part, d) && d->len;
}

char *demangle__short(const char *name, char *buf, size_t size)
{
	struct demangled *d = strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) ? NULL : malloc(sizeof(*d));

	snprintf(buf, size, "%s", d && (demangle_rust(d, name) || demangle(d, name, DMGL_NO_OPTS)) ? d->text : name);
	free(d);
	return buf;
}
