// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A Python extension that holds the GIL while it computes, like many extensions. */
#include <Python.h>

static unsigned long scan(const unsigned char *text, Py_ssize_t length)
{
	unsigned long hash = 14695981039346656037UL;

	for (Py_ssize_t i = 0; i < length; i++)
		hash = (hash ^ text[i]) * 1099511628211UL;
	return hash;
}

static PyObject *textscan_count(PyObject *self, PyObject *args)
{
	unsigned long sum = 0;
	Py_buffer text;
	int rounds;

	(void)self;
	if (!PyArg_ParseTuple(args, "y*i", &text, &rounds))
		return NULL;
	while (rounds-- > 0)
		sum ^= scan(text.buf, text.len - rounds);
	PyBuffer_Release(&text);
	return PyLong_FromUnsignedLong(sum);
}

static PyMethodDef methods[] = {
	{ "count", textscan_count, METH_VARARGS, "Scans a text this many times." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "textscan", NULL, -1, methods, NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_textscan(void)
{
	return PyModule_Create(&module);
}
