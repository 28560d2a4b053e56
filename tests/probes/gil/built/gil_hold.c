// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A Python extension that takes and drops the GIL from C at known times:
 * hold(seconds, held_us, free_us) works with the GIL, drops it, works without it,
 * takes it, ... and returns a list of (taken, dropped) in CLOCK_MONOTONIC ns.
 * Limited API of 3.8: one build for all versions.
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define MAX_HOLDS 200000

struct hold_times {
	uint64_t taken, dropped;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void work(uint64_t ns)
{
	uint64_t until = now() + ns;

	while (now() < until)
		;
}

static PyObject *to_list(const struct hold_times *t, int n)
{
	PyObject *list = PyList_New(n), *pair;
	int i;

	for (i = 0; list && i < n; i++) {
		pair = Py_BuildValue("(KK)", (unsigned long long)t[i].taken, (unsigned long long)t[i].dropped);
		if (!pair || PyList_SetItem(list, i, pair)) {
			Py_DECREF(list);
			return NULL;
		}
	}
	return list;
}

static PyObject *hold(PyObject *self, PyObject *args)
{
	double seconds, held_us, free_us;
	struct hold_times *t;
	PyThreadState *state;
	PyObject *list;
	uint64_t end;
	int n = 0;

	(void)self;
	if (!PyArg_ParseTuple(args, "ddd", &seconds, &held_us, &free_us))
		return NULL;
	t = malloc(MAX_HOLDS * sizeof(*t));
	if (!t)
		return PyErr_NoMemory();
	end = now() + (uint64_t)(seconds * 1e9);
	t[0].taken = now();
	while (n < MAX_HOLDS - 1 && now() < end) {
		work((uint64_t)(held_us * 1e3));
		t[n].dropped = now();
		state = PyEval_SaveThread();
		work((uint64_t)(free_us * 1e3));
		PyEval_RestoreThread(state);
		t[++n].taken = now();
	}
	list = to_list(t, n);
	free(t);
	return list;
}

static PyMethodDef methods[] = {
	{ "hold", hold, METH_VARARGS, "hold(seconds, held_us, free_us) -> [(taken, dropped), ...]" },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT, "gil_hold", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_gil_hold(void)
{
	return PyModule_Create(&module);
}
