// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PyTorch's own functions: calls of modules, backward, and the step of each optimizer's class. The step in a class
 * changes when its first object is made (profile_hook_step), so the innermost function is traced, which stays.
 */
#include "functions.h"
#include "shim.h"

#include <stdio.h>
#include <string.h>

#define CLASSES_MAX 256
#define SHAPES_TEXT 256

static struct {
	PyObject *tensor, *parameter; /* the classes */
	PyObject *shape_name; /* "shape" */
} torch;

/* A member of an imported module; NULL: there is none. */
static PyObject *member_of(const char *module, const char *name)
{
	PyObject *modules = python.PySys_GetObject("modules");
	PyObject *m = modules ? python.PyDict_GetItemString(modules, module) : NULL;

	return m ? functions__member(m, name) : NULL;
}

static bool is_function(PyObject *o)
{
	return o && python__type(o) == python.PyFunction_Type;
}

/* Also the classes that are derived from it, each once. */
static void add_steps(PyObject *class, uint32_t *n, void (*add)(PyObject *, const char *, bool))
{
	PyObject *step = functions__member(class, "step"), *method, *empty, *classes;
	char name[128];

	if (++*n > CLASSES_MAX)
		return;
	snprintf(name, sizeof(name), "%s.step", python__type_name(class));
	if (is_function(step))
		add(functions__innermost(step), name, false);
	method = python.PyObject_GetAttrString(class, "__subclasses__");
	empty = python.PyTuple_New(0);
	classes = method && empty ? python.PyObject_Call(method, empty, NULL) : NULL;
	python.PyErr_Clear();
	for (ssize_t i = 0, all = classes ? python.PyList_Size(classes) : 0; i < all; i++)
		add_steps(python.PyList_GetItem(classes, i), n, add);
	for (int i = 0; i < 3; i++) {
		PyObject *o = i == 0 ? method : i == 1 ? empty : classes;

		if (o)
			python.Py_DecRef(o);
	}
}

void functions__find_torch(void (*add)(PyObject *function, const char *name, bool has_shapes))
{
	PyObject *module = member_of("torch.nn.modules.module", "Module");
	PyObject *call = module ? functions__member(module, "__call__") : NULL;
	PyObject *backward = member_of("torch.autograd", "backward");
	PyObject *optimizer = member_of("torch.optim.optimizer", "Optimizer");
	uint32_t n = 0;

	torch.tensor = member_of("torch", "Tensor");
	torch.parameter = member_of("torch.nn.parameter", "Parameter");
	if (!torch.shape_name)
		torch.shape_name = python.PyUnicode_InternFromString("shape");
	if (is_function(call))
		add(call, "torch.nn.Module", true);
	if (is_function(backward))
		add(backward, "backward", false);
	if (optimizer)
		add_steps(optimizer, &n, add);
}

PyObject *functions__torch_compile(bool *is_imported)
{
	PyObject *modules = python.PySys_GetObject("modules"), *compile = member_of("torch", "compile");

	*is_imported = modules && python.PyDict_GetItemString(modules, "torch");
	return is_function(compile) ? compile : NULL;
}

/* The compilers that were given to torch.compile; None is that of functions that are not to be compiled. */
bool functions__has_compiled(void)
{
	PyObject *compilers = member_of("torch._dynamo.eval_frame", "cached_backends");
	PyObject *values = compilers ? python.PyDict_Values(compilers) : NULL;
	bool has = false;

	python.PyErr_Clear();
	for (ssize_t i = 0, n = values ? python.PyList_Size(values) : 0; i < n; i++)
		has |= python.PyList_GetItem(values, i) != python._Py_NoneStruct;
	if (values)
		python.Py_DecRef(values);
	return has;
}

static bool is_tensor(PyObject *o)
{
	PyObject *type = python__type(o);

	return type == torch.tensor || type == torch.parameter;
}

/* Appends [2,3]. A tensor of these two classes has a shape that C code returns, without code of the program. */
static size_t add_shape(char *text, size_t len, PyObject *tensor)
{
	PyObject *shape = python.PyObject_GetAttr(tensor, torch.shape_name);
	ssize_t n = shape && python.PyType_IsSubtype(python__type(shape), python.PyTuple_Type) ?
			    python.PyTuple_Size(shape) :
			    0;
	char *at = text + len, *end = text + SHAPES_TEXT;

	if (at < end - 32)
		*at++ = '[';
	for (ssize_t i = 0; i < n && at < end - 32; i++) {
		long size = python.PyLong_AsLong(python.PyTuple_GetItem(shape, i));
		char digits[24], *d = digits + sizeof(digits);
		unsigned long left = size < 0 ? 0 : (unsigned long)size;

		do
			*--d = '0' + left % 10;
		while (left /= 10);
		if (i)
			*at++ = ',';
		memcpy(at, d, (size_t)(digits + sizeof(digits) - d));
		at += digits + sizeof(digits) - d;
	}
	if (at < end - 1)
		*at++ = ']';
	python.PyErr_Clear();
	if (shape)
		python.Py_DecRef(shape);
	return (size_t)(at - text);
}

uint64_t functions__shapes(PyObject *const *args, size_t n)
{
	char text[SHAPES_TEXT];
	size_t len = 0;

	for (size_t i = 0; i < n && len < SHAPES_TEXT - 64; i++) {
		if (!is_tensor(args[i]))
			continue;
		if (len)
			text[len++] = ' ';
		len = add_shape(text, len, args[i]);
	}
	text[len] = '\0';
	return len ? functions__text(text) : 0;
}
