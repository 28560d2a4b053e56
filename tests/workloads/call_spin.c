// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls one function of a library in a tight loop and prints the time of a call.
 *
 *	call_spin LIBRARY	reads lines `FUNCTION CALLS BATCHES`, answers each
 *				with a line: ns per call of every batch
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int calls, batches, (*fn)(void *);
	unsigned long long start;
	char name[64];
	void *lib;

	lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!lib) {
		fprintf(stderr, "call_spin: %s\n", argc > 1 ? dlerror() : "which library?");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (scanf("%63s %d %d", name, &calls, &batches) == 3) {
		fn = (int (*)(void *))dlsym(lib, name);
		if (!fn)
			return 1;
		for (int b = 0; b < batches; b++) {
			start = now();
			for (int i = 0; i < calls; i++)
				fn(NULL);
			printf("%.1f ", (double)(now() - start) / calls);
		}
		putchar('\n');
		fflush(stdout);
	}
	return 0;
}
