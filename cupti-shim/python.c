// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "libc.h"
#include "python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST	      8 /* 3.8 introduced vectorcall */
#define FUNCTION_SIZE 512 /* bytes; more than any function object has */

struct python python;

static bool look_up_all(void)
{
	bool all = true;

#define FIND(type, name, args)                                                        \
	python.name = (__typeof__(python.name))(uintptr_t)dlsym(RTLD_DEFAULT, #name); \
	all &= !!python.name;
#define FIND_LATER(type, name, args) python.name = (__typeof__(python.name))(uintptr_t)dlsym(RTLD_DEFAULT, #name);
#define FIND_TYPE(name)                           \
	python.name = dlsym(RTLD_DEFAULT, #name); \
	all &= !!python.name;
	PYTHON_FUNCTIONS(FIND)
	PYTHON_TYPES(FIND_TYPE)
	PYTHON_FUNCTIONS_LATER(FIND_LATER)
	return all && (python._Py_IsFinalizing || python.Py_IsFinalizing);
}

/* PyTypeObject.tp_vectorcall_offset, which took the place of tp_print in 3.8 */
static size_t vectorcall_offset(void)
{
	return ((const size_t *)python.PyFunction_Type)[7];
}

/* A free-threaded or a debug build has other layouts: its flags are in sys.abiflags, which needs the GIL. */
static bool is_usual_build(void)
{
	int gil = python__enter();
	PyObject *flags = python.PySys_GetObject("abiflags");
	const char *text = flags ? python.PyUnicode_AsUTF8AndSize(flags, NULL) : "";
	bool usual = text && !*text;

	python.PyErr_Clear();
	python__leave(gil);
	return usual;
}

int python__find(const char **why)
{
	int (*is_initialized)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	const char *version;

	if (python.is_known)
		return 0;
	*why = "the process has no Python whose functions the dynamic loader shows to others";
	if (!is_initialized || !is_initialized())
		return -EAGAIN;
	*why = "not a CPython from 3.8 on";
	python.Py_GetVersion = (const char *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_GetVersion");
	version = python.Py_GetVersion ? python.Py_GetVersion() : "";
	if (strncmp(version, "3.", 2) || atoi(version + 2) < OLDEST)
		return -ENOTSUP;
	python.minor = atoi(version + 2);
	*why = "this Python lacks functions of CPython that are needed";
	if (!look_up_all() || (python.minor >= 12 && !python.PyFunction_SetVectorcall))
		return -ENOTSUP;
	if (!python__is_alive())
		return -EAGAIN;
	python.vectorcall = vectorcall_offset();
	*why = "a debug build, or one without the GIL, is not supported";
	if (!python.vectorcall || python.vectorcall % 8 || python.vectorcall > FUNCTION_SIZE || !is_usual_build())
		return -ENOTSUP;
	*why = "";
	python.is_known = true;
	return 0;
}

bool python__is_alive(void)
{
	return python.Py_IsInitialized() &&
	       !(python.Py_IsFinalizing ? python.Py_IsFinalizing() : python._Py_IsFinalizing());
}

int python__enter(void)
{
	return python.PyGILState_Ensure();
}

void python__leave(int state)
{
	python.PyGILState_Release(state);
}

void python__learn(PyObject *function)
{
	PyObject *made;

	if (python.default_vectorcall)
		return;
	made = python.PyFunction_New(python.PyFunction_GetCode(function), python.PyFunction_GetGlobals(function));
	if (made) {
		python.default_vectorcall = *python__vectorcall_of(made);
		python.Py_DecRef(made);
	}
	python.PyErr_Clear();
}
