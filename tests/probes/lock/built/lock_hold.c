// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A Python extension that logs the holds of its own mutexes: hold(mutex, line, nap_us, work_us) waits for the mutex
 * without the GIL, sleeps and computes while it holds it, and releases it. log() returns a list of (mutex, thread,
 * line, asked, got, released), times in CLOCK_MONOTONIC ns. Limited API of 3.8: one build for all versions.
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MUTEXES 4
#define HOLDS	100000

static pthread_mutex_t mutexes[MUTEXES] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
					    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static struct hold {
	int mutex, tid, line;
	uint64_t asked, got, released;
} holds[HOLDS];
static int n_holds;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void hold_mutex(struct hold *h, int nap_us, int work_us)
{
	uint64_t until;

	h->tid = (int)syscall(SYS_gettid);
	h->asked = now();
	pthread_mutex_lock(&mutexes[h->mutex]);
	h->got = now();
	if (nap_us)
		usleep(nap_us);
	until = now() + work_us * 1000ULL;
	while (now() < until)
		;
	h->released = now();
	pthread_mutex_unlock(&mutexes[h->mutex]);
}

static PyObject *hold(PyObject *self, PyObject *args)
{
	int mutex, line, nap_us, work_us, i;
	PyThreadState *state;

	if (!PyArg_ParseTuple(args, "iiii", &mutex, &line, &nap_us, &work_us))
		return NULL;
	i = __sync_fetch_and_add(&n_holds, 1);
	if (i >= HOLDS || mutex < 0 || mutex >= MUTEXES) {
		PyErr_SetString(PyExc_ValueError, "too many holds");
		return NULL;
	}
	holds[i].mutex = mutex;
	holds[i].line = line;
	state = PyEval_SaveThread();
	hold_mutex(&holds[i], nap_us, work_us);
	PyEval_RestoreThread(state);
	Py_RETURN_NONE;
}

static PyObject *get_log(PyObject *self, PyObject *args)
{
	PyObject *list = PyList_New(n_holds);

	for (int i = 0; list && i < n_holds; i++) {
		const struct hold *h = &holds[i];
		PyObject *entry = Py_BuildValue("(iiiKKK)", h->mutex, h->tid, h->line, (unsigned long long)h->asked,
						(unsigned long long)h->got, (unsigned long long)h->released);

		if (!entry || PyList_SetItem(list, i, entry))
			return NULL;
	}
	return list;
}

static PyMethodDef methods[] = {
	{ "hold", hold, METH_VARARGS, NULL },
	{ "log", get_log, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "lock_hold", NULL, -1, methods, NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_lock_hold(void)
{
	return PyModule_Create(&module);
}
