// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls libnvToolsExt.so.1 (NVTX 2): old_calls LIBRARY [before] ROUNDS. Waits for a line on stdin first; `before` makes
 * a call before that.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*push)(const char *);
static int (*pop)(void);
static void (*mark)(const char *);
static uint64_t (*start)(const char *);
static void (*end)(uint64_t);

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	int rounds = atoi(argv[argc - 1]);
	char line[16];

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	push = (int (*)(const char *))dlsym(library, "nvtxRangePushA");
	pop = (int (*)(void))dlsym(library, "nvtxRangePop");
	mark = (void (*)(const char *))dlsym(library, "nvtxMarkA");
	start = (uint64_t(*)(const char *))dlsym(library, "nvtxRangeStartA");
	end = (void (*)(uint64_t))dlsym(library, "nvtxRangeEnd");
	if (argc > 3)
		mark("before");
	printf("%d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < rounds; i++) {
		push("old outer");
		push("old inner");
		mark("old mark");
		pop();
		pop();
		end(start("old started"));
	}
	return 0;
}
