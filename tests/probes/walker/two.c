// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* two LIBPYTHON LIBPYTHON: runs one thread in each of two CPythons, which are loaded apart from each other. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const code[2] = {
	"def first():\n while True:\n  sum(range(10000))\nfirst()\n",
	"def second():\n while True:\n  sum(range(10000))\nsecond()\n",
};
static const char *const *files;

static void *run(void *arg)
{
	long i = (long)arg;
	void *lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
	void (*initialize)(int);
	int (*string)(const char *);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	initialize = (void (*)(int))dlsym(lib, "Py_InitializeEx");
	string = (int (*)(const char *))dlsym(lib, "PyRun_SimpleString");
	initialize(0);
	printf("%ld %s\n", (long)syscall(SYS_gettid), i ? "second" : "first");
	fflush(stdout);
	string(code[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc != 3)
		return 2;
	files = (const char *const *)argv + 1;
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	pthread_join(threads[0], NULL);
}
