// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The families' host code, as the linker gathered it. */
#include "record/internal.h"

#include <string.h>

extern const struct family_host *const __start_sonde_family_hosts[] __attribute__((weak));
extern const struct family_host *const __stop_sonde_family_hosts[] __attribute__((weak));

void family_host__each(struct session *s, void (*fn)(struct session *s, const struct family_host *h, void *arg),
		       void *arg)
{
	for (const struct family_host *const *h = __start_sonde_family_hosts; h < __stop_sonde_family_hosts; h++)
		fn(s, *h, arg);
}

const struct family_host *family_host__find(const char *name)
{
	for (const struct family_host *const *h = __start_sonde_family_hosts; h < __stop_sonde_family_hosts; h++)
		if (!strcmp((*h)->name, name))
			return *h;
	return NULL;
}

bool family_host__python_asked(struct session *s, const struct family_host *h)
{
	return h && h->python_option && session__option(s, h->name, h->python_option);
}
