// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looks up MODULE:QUALNAME in what the program has imported. Nothing is imported, and only namespaces are read: no
 * __getattr__ and no descriptor of the program runs.
 */
#include "functions.h"

#include <string.h>

#define NAME_MAX 256
#define DEPTH	 16 /* decorators within each other */

/* A class's or a module's own namespace: a new reference, or NULL. */
static PyObject *namespace_of(PyObject *owner)
{
	static PyObject *dict_name;
	PyObject *dict = NULL;

	if (python__is(owner, python.PyModule_Type)) {
		dict = python.PyModule_GetDict(owner);
		if (dict)
			python.Py_IncRef(dict);
		return dict;
	}
	if (!python__is(owner, python.PyType_Type))
		return NULL;
	if (!dict_name)
		dict_name = python.PyUnicode_InternFromString("__dict__");
	/* not by the metaclass's __getattribute__ */
	return dict_name ? python.PyObject_GenericGetAttr(owner, dict_name) : NULL;
}

PyObject *functions__member(PyObject *owner, const char *name)
{
	PyObject *dict = namespace_of(owner), *key = python.PyUnicode_FromString(name), *value = NULL;

	if (dict && key)
		value = python.PyObject_GetItem(dict, key);
	python.PyErr_Clear();
	if (dict)
		python.Py_DecRef(dict);
	if (key)
		python.Py_DecRef(key);
	/* the namespace has a reference, too, and nothing changes it while this thread holds the GIL */
	if (value)
		python.Py_DecRef(value);
	return value;
}

PyObject *functions__innermost(PyObject *function)
{
	for (int i = 0; i < DEPTH; i++) {
		PyObject *dict = python.PyObject_GetAttrString(function, "__dict__");
		PyObject *inner = dict ? python.PyDict_GetItemString(dict, "__wrapped__") : NULL;

		python.PyErr_Clear();
		if (dict)
			python.Py_DecRef(dict);
		if (!inner || python__type(inner) != python.PyFunction_Type)
			break;
		function = inner;
	}
	return function;
}

/* The function in a staticmethod or classmethod. Borrowed. */
static PyObject *without_method(PyObject *o)
{
	PyObject *inner;

	if (python__type(o) != python.PyClassMethod_Type && python__type(o) != python.PyStaticMethod_Type)
		return o;
	inner = python.PyObject_GetAttrString(o, "__func__");
	python.PyErr_Clear();
	if (!inner)
		return o;
	python.Py_DecRef(inner);
	return inner;
}

PyObject *functions__find(struct function *f)
{
	PyObject *modules = python.PySys_GetObject("modules");
	PyObject *at = modules ? python.PyDict_GetItemString(modules, f->module) : NULL;
	const char *p = f->name;
	char part[NAME_MAX];

	while (at && *p) {
		size_t len = strcspn(p, ".");

		if (len >= sizeof(part)) {
			f->why = "its name is too long";
			return NULL;
		}
		memcpy(part, p, len);
		part[len] = '\0';
		/* what a function contains exists only during its calls */
		if (python__type(at) == python.PyFunction_Type || strchr(part, '<')) {
			f->why = "a function or lambda within a function is a new object in each call";
			return NULL;
		}
		at = functions__member(at, part);
		p += len + (p[len] == '.');
	}
	if (!at)
		return NULL;
	at = without_method(at);
	if (python__type(at) != python.PyFunction_Type) {
		f->why = "it is no Python function, but a class, a property, or compiled code";
		return NULL;
	}
	python.Py_IncRef(at);
	return at;
}
