// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints the results of gil_find.h for each file in its arguments, one JSON object per line. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gil/gil_find.h"
#include "site/place.h"

static void dump_full(struct elf *elf)
{
	struct gil_full_sites f;
	u32 i;

	gil_find__full(elf, &f);
	printf(", \"unknown\": %u, \"takes\": [", f.unknown);
	for (i = 0; i < f.n_takes; i++)
		printf("%s%llu", i ? ", " : "", f.takes[i]);
	printf("], \"drops\": [");
	for (i = 0; i < f.n_drops; i++)
		printf("%s%llu", i ? ", " : "", f.drops[i]);
	printf("], \"switches\": [");
	for (i = 0; i < f.n_switches; i++)
		printf("%s[%llu, %llu]", i ? ", " : "", f.switches[i].call, f.switches[i].jump);
	printf("]");
}

static void dump(const char *path)
{
	struct gil_wait_site p[GIL_SITES_MAX];
	struct gil_libc_site libc;
	struct elf *elf = NULL;
	const char *why = "";
	u32 i, n;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	err = fd < 0 ? -1 : elf__open(&elf, fd);
	printf("{\"path\": \"%s\", \"error\": %d", path, err);
	if (!err) {
		n = gil_find__waits(elf, p, GIL_SITES_MAX);
		printf(", \"cpython\": %d, \"free_threaded\": %d, \"shstk\": %d, \"waits\": [",
		       gil_find__is_cpython(elf), gil_find__is_free_threaded(elf), place__marked_shadow_stack(elf));
		for (i = 0; i < n; i++)
			printf("%s[%llu, %llu]", i ? ", " : "", p[i].call, p[i].jump);
		err = gil_find__libc(elf, &libc, &why);
		printf("], \"libc\": {\"why\": \"%s\", \"enter\": %llu, \"leave\": [", err ? why : "", libc.enter);
		for (i = 0; !err && i < libc.n; i++)
			printf("%s%llu", i ? ", " : "", libc.leave[i]);
		printf("]}");
		dump_full(elf);
	}
	printf("}\n");
	elf__close(elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		dump(argv[i]);
	return 0;
}
