// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A Python extension that repeatedly holds the GIL for a known time and rests for a
 * known time: turns(seconds, hold_us, rest_us, spin) returns a list of (taken, dropped,
 * back) in CLOCK_MONOTONIC ns. It held the GIL from taken to dropped, rested until back,
 * and then waited until the next taken. All of it is in C, so that the interpreter can't
 * drop the GIL in between. Limited API of 3.8: one build for all versions.
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define MAX_TURNS 100000

struct turn {
	uint64_t taken, dropped, back;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Computes (spin 2): the innermost function in samples. It is exported, so that its name survives stripping. */
__attribute__((noinline)) uint64_t planted_burn(uint64_t until, uint64_t x)
{
	while (now() < until)
		for (int i = 0; i < 200000; i++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			__asm__ volatile("" : "+r"(x));
		}
	return x;
}

static void pass(uint64_t until, int spin)
{
	struct timespec t = { until / 1000000000, until % 1000000000 };

	if (!spin)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	if (spin == 2)
		planted_burn(until, until);
	while (now() < until)
		;
}

static PyObject *to_list(const struct turn *t, int n)
{
	PyObject *list = PyList_New(n), *item;
	int i;

	for (i = 0; list && i < n; i++) {
		item = Py_BuildValue("(KKK)", (unsigned long long)t[i].taken, (unsigned long long)t[i].dropped,
				     (unsigned long long)t[i].back);
		if (!item || PyList_SetItem(list, i, item)) {
			Py_DECREF(list);
			return NULL;
		}
	}
	return list;
}

static PyObject *turns(PyObject *self, PyObject *args)
{
	double seconds, hold_us, rest_us;
	PyThreadState *state;
	PyObject *list;
	struct turn *t;
	int n = 0, spin;
	uint64_t end;

	(void)self;
	if (!PyArg_ParseTuple(args, "dddi", &seconds, &hold_us, &rest_us, &spin))
		return NULL;
	t = calloc(MAX_TURNS, sizeof(*t));
	if (!t)
		return PyErr_NoMemory();
	t[0].taken = now();
	end = t[0].taken + (uint64_t)(seconds * 1e9);
	while (n < MAX_TURNS - 1 && now() < end) {
		pass(now() + (uint64_t)(hold_us * 1e3), spin);
		t[n].dropped = now();
		state = PyEval_SaveThread();
		pass(now() + (uint64_t)(rest_us * 1e3), 0);
		t[n].back = now();
		PyEval_RestoreThread(state);
		t[++n].taken = now();
	}
	/* taking the GIL here ends the last wait */
	t[n].dropped = t[n].back = t[n].taken;
	list = to_list(t, n + 1);
	free(t);
	return list;
}

static PyMethodDef methods[] = {
	{ "turns", turns, METH_VARARGS, "turns(seconds, hold_us, rest_us, spin) -> [(taken, dropped, back), ...]" },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT, "gil_plant", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_gil_plant(void)
{
	return PyModule_Create(&module);
}
