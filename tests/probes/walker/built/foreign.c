// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that run Python code with thread states that the main thread made, as uWSGI's threads do. Loaded by
 * test_foreign.py into a CPython, whose functions it uses without Python.h.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void *PyThreadState_New(void *interpreter);
void PyEval_RestoreThread(void *state);
int PyRun_SimpleString(const char *code);

static void *states[2];
static const char *const code[2] = {
	"def first():\n while True:\n  sum(range(10000))\nfirst()\n",
	"import time\ndef second():\n while True:\n  sum(range(10000))\n  time.sleep(0.003)\nsecond()\n",
};

static void *run(void *arg)
{
	long i = (long)arg;

	printf("%ld %s\n", (long)syscall(SYS_gettid), i ? "second" : "first");
	fflush(stdout);
	PyEval_RestoreThread(states[i]);
	PyRun_SimpleString(code[i]);
	return NULL;
}

void foreign_start(void *interpreter)
{
	pthread_t thread;

	for (long i = 0; i < 2; i++) {
		states[i] = PyThreadState_New(interpreter);
		pthread_create(&thread, NULL, run, (void *)i);
	}
}
