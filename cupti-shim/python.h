/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of CPython that the shim calls, looked up in the process: the shim is not linked to any Python. The
 * declarations are those of CPython's headers (Include/, Include/cpython/), with objects as pointers to an opaque type.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct python_object PyObject;
typedef PyObject *(*python_vectorcall)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names);

/* Every CPython since 3.8 has these. */
#define PYTHON_FUNCTIONS(X)                                                    \
	X(int, Py_IsInitialized, (void))                                       \
	X(const char *, Py_GetVersion, (void))                                 \
	X(int, PyGILState_Ensure, (void))                                      \
	X(void, PyGILState_Release, (int))                                     \
	X(void, Py_IncRef, (PyObject *))                                       \
	X(void, Py_DecRef, (PyObject *))                                       \
	X(PyObject *, PyErr_Occurred, (void))                                  \
	X(void, PyErr_Clear, (void))                                           \
	X(PyObject *, PySys_GetObject, (const char *))                         \
	X(PyObject *, PyModule_GetDict, (PyObject *))                          \
	X(PyObject *, PyDict_GetItemString, (PyObject *, const char *))        \
	X(PyObject *, PyDict_New, (void))                                      \
	X(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))   \
	X(PyObject *, PyObject_GenericGetAttr, (PyObject *, PyObject *))       \
	X(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *))              \
	X(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))      \
	X(int, PyObject_SetAttrString, (PyObject *, const char *, PyObject *)) \
	X(PyObject *, PyObject_GetItem, (PyObject *, PyObject *))              \
	X(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *))     \
	X(int, PyType_IsSubtype, (PyObject *, PyObject *))                     \
	X(PyObject *, PyType_FromSpec, (void *))                               \
	X(PyObject *, PyType_GenericAlloc, (PyObject *, ssize_t))              \
	X(PyObject *, PyUnicode_FromString, (const char *))                    \
	X(PyObject *, PyUnicode_InternFromString, (const char *))              \
	X(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, ssize_t *))      \
	X(PyObject *, PyTuple_New, (ssize_t))                                  \
	X(ssize_t, PyTuple_Size, (PyObject *))                                 \
	X(PyObject *, PyTuple_GetItem, (PyObject *, ssize_t))                  \
	X(int, PyTuple_SetItem, (PyObject *, ssize_t, PyObject *))             \
	X(PyObject *, PyDict_Values, (PyObject *))                             \
	X(ssize_t, PyList_Size, (PyObject *))                                  \
	X(PyObject *, PyList_GetItem, (PyObject *, ssize_t))                   \
	X(PyObject *, PyLong_FromLong, (long))                                 \
	X(long, PyLong_AsLong, (PyObject *))                                   \
	X(PyObject *, PyBytes_FromStringAndSize, (const char *, ssize_t))      \
	X(int, PyBytes_AsStringAndSize, (PyObject *, char **, ssize_t *))      \
	X(PyObject *, PyFunction_New, (PyObject *, PyObject *))                \
	X(PyObject *, PyFunction_GetCode, (PyObject *))                        \
	X(PyObject *, PyFunction_GetGlobals, (PyObject *))

/* Some versions lack these: NULL. */
#define PYTHON_FUNCTIONS_LATER(X)                        \
	X(int, _Py_IsFinalizing, (void)) /* to 3.12 */   \
	X(int, Py_IsFinalizing, (void)) /* since 3.13 */ \
	X(void, PyFunction_SetVectorcall, (PyObject *, python_vectorcall)) /* since 3.12 */

#define PYTHON_TYPES(X)        \
	X(PyFunction_Type)     \
	X(PyModule_Type)       \
	X(PyType_Type)         \
	X(PyClassMethod_Type)  \
	X(PyStaticMethod_Type) \
	X(PyTuple_Type)        \
	X(PyCell_Type)         \
	X(PyLong_Type)         \
	X(_Py_NoneStruct)

struct python {
#define MEMBER(type, name, args) type(*name) args;
	PYTHON_FUNCTIONS(MEMBER)
	PYTHON_FUNCTIONS_LATER(MEMBER)
#undef MEMBER
#define MEMBER(name) PyObject *name;
	PYTHON_TYPES(MEMBER)
#undef MEMBER
	bool is_known; /* python__find() has succeeded */
	int minor; /* 3.minor */
	/* offset of the vectorcall in a function object, as the type of functions states it */
	size_t vectorcall;
	python_vectorcall default_vectorcall; /* of a new function; NULL: python__learn() was not called */
};

extern struct python python;

/* Finds the functions. Returns 0, -EAGAIN (no Python, or not initialized) or -ENOTSUP; *why is the reason. */
int python__find(const char **why);
/* Is the interpreter usable from another thread now? */
bool python__is_alive(void);
/*
 * The GIL, on a thread state that lives until the release. Only for a thread that nothing waits for: while the
 * interpreter ends, CPython ends the thread here, or lets it wait forever.
 */
int python__enter(void);
void python__leave(int state);

/* Makes a function like this one, to see what the vectorcall of a new function is. The GIL is held. */
void python__learn(PyObject *function);

static inline PyObject *python__type(PyObject *o)
{
	return ((PyObject **)o)[1];
}

/* The name of a type: tp_name. */
static inline const char *python__type_name(PyObject *type)
{
	return ((const char **)type)[3];
}

static inline bool python__is(PyObject *o, PyObject *type)
{
	return python__type(o) == type || python.PyType_IsSubtype(python__type(o), type);
}

static inline python_vectorcall *python__vectorcall_of(PyObject *function)
{
	return (python_vectorcall *)((char *)function + python.vectorcall);
}
