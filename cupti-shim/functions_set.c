// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Intercepts calls of single function objects. All calls of a function go through its `vectorcall`, which any code
 * may replace (PyFunction_SetVectorcall since 3.12; 3.8 to 3.10 read it for each call). 3.11 ignores it where Python
 * code calls Python code, and 3.13 where an object is made; there the function gets a copy of its code object with a
 * prologue (functions_code.c). Everything here runs with the GIL held.
 *
 * torch.compile reads the code of the functions that it compiles, and fails if it finds the prologue. So no code object
 * is changed once it is in use: its calls are watched, from the first moment at which a module torch exists.
 */
#include "functions.h"
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS (FUNCTIONS_MAX * 4) /* a power of two */

/* By the address of the function object, which has a reference while it is here. */
static struct bucket {
	PyObject *object;
	struct function *function;
} * buckets; /* NULL: no memory, or none yet */

/* The bucket of an object, or the free one that it would take; NULL: none is free. */
static struct bucket *bucket_of(PyObject *object)
{
	size_t at = ((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15ULL >> 40;

	for (size_t i = 0; buckets && i < BUCKETS; i++) {
		struct bucket *b = &buckets[(at + i) % BUCKETS];

		if (!b->object || b->object == object)
			return b;
	}
	return NULL;
}

static PyObject *traced_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
	const struct bucket *b = bucket_of(callable);
	const struct function *f = b && b->object ? b->function : NULL;
	size_t n = nargsf & ~(1ULL << 63); /* PY_VECTORCALL_ARGUMENTS_OFFSET */
	uint64_t start, class = 0, shapes = 0;
	PyObject *result;

	if (f && f->is_compile)
		functions__compiler_starts();
	if (!f || f->is_compile || !functions__is_active())
		return python.default_vectorcall(callable, args, nargsf, names);
	if (f->has_shapes && n) {
		class = functions__text(python__type_name(python__type(args[0])));
		n += names ? (size_t)python.PyTuple_Size(names) : 0;
		shapes = functions__shapes(args + 1, n - 1);
	}
	start = shim__now();
	result = python.default_vectorcall(callable, args, nargsf, names);
	functions__record(f, class, shapes, start, !result);
	return result;
}

static bool set_vectorcall(struct function *f)
{
	struct bucket *b;

	if (!buckets)
		buckets = calloc(BUCKETS, sizeof(*buckets));
	b = bucket_of(f->object);
	python__learn(f->object);
	if (!b || !python.default_vectorcall || *python__vectorcall_of(f->object) != python.default_vectorcall) {
		f->why = b ? "another library has replaced its vectorcall" : "too many functions";
		return false;
	}
	*b = (struct bucket){ .object = f->object, .function = f };
	if (python.PyFunction_SetVectorcall)
		python.PyFunction_SetVectorcall(f->object, traced_call);
	else
		*python__vectorcall_of(f->object) = traced_call;
	return true;
}

/* What follows a removed entry moves up if its search would else end there. */
static void remove_bucket(struct bucket *b)
{
	size_t at = (size_t)(b - buckets);

	b->object = NULL;
	for (size_t i = (at + 1) % BUCKETS; buckets[i].object; i = (i + 1) % BUCKETS) {
		struct bucket moved = buckets[i];

		buckets[i].object = NULL;
		*bucket_of(moved.object) = moved;
	}
}

static void unset_vectorcall(struct function *f)
{
	struct bucket *b = bucket_of(f->object);

	if (*python__vectorcall_of(f->object) == traced_call) {
		if (python.PyFunction_SetVectorcall)
			python.PyFunction_SetVectorcall(f->object, python.default_vectorcall);
		else
			*python__vectorcall_of(f->object) = python.default_vectorcall;
	}
	if (b && b->object)
		remove_bucket(b);
}

static struct {
	struct function compile; /* torch.compile, while it is watched */
	bool is_used, is_importing;
} torch = { .compile = { .name = "torch.compile", .is_compile = true } };

#define COMPILED "torch.compile is in use, which would read the changed code that this version of CPython needs"

void functions__compiler_starts(void)
{
	torch.is_used = true;
	functions__unset_codes(COMPILED);
}

void functions__watch_compiler(void)
{
	PyObject *compile = functions__torch_compile(&torch.is_importing);

	if (!functions__knows_code() || torch.is_used)
		return;
	torch.is_importing &= !compile;
	if (functions__has_compiled())
		functions__compiler_starts();
	else if (torch.is_importing)
		functions__unset_codes(NULL);
	else if (compile && compile != torch.compile.object) {
		functions__unset(&torch.compile);
		python.Py_IncRef(compile);
		functions__set(&torch.compile, compile);
	}
}

void functions__end_watch(void)
{
	functions__unset(&torch.compile);
	torch.is_used = torch.is_importing = false;
}

static bool set_code(struct function *f)
{
	PyObject *code = python.PyFunction_GetCode(f->object);

	if (torch.is_used || torch.is_importing) {
		f->why = torch.is_used ? COMPILED : NULL;
		return false;
	}
	if (!functions__knows_code()) {
		f->why = "this version of CPython calls an __init__ in a way that sonde does not know";
		return false;
	}
	f->code_set = functions__make_code(f, code, f->is_generator);
	if (!f->code_set)
		return false;
	if (python.PyObject_SetAttrString(f->object, "__code__", f->code_set)) {
		python.PyErr_Clear();
		python.Py_DecRef(f->code_set);
		f->code_set = NULL;
		f->why = "its code object can't be replaced";
		return false;
	}
	return true;
}

static void unset_code(struct function *f)
{
	/* code that the program has set meanwhile stays */
	if (python.PyFunction_GetCode(f->object) == f->code_set)
		python.PyObject_SetAttrString(f->object, "__code__", f->code_before);
	python.PyErr_Clear();
	python.Py_DecRef(f->code_set);
	f->code_set = NULL;
}

/* Does CPython ignore the vectorcall where it calls this function? */
static bool is_inlined(const struct function *f)
{
	const char *last = strrchr(f->name, '.');

	/* C code calls a module's __call__, and reads the vectorcall even in 3.11 */
	if (python.minor == 11)
		return !f->has_shapes;
	/* CALL_ALLOC_AND_ENTER_INIT */
	return python.minor >= 13 && last && !strcmp(last, ".__init__");
}

static long code_flags(PyObject *code)
{
	PyObject *flags = python.PyObject_GetAttrString(code, "co_flags");
	long value = flags ? python.PyLong_AsLong(flags) : 0;

	if (flags)
		python.Py_DecRef(flags);
	return value;
}

bool functions__set(struct function *f, PyObject *object)
{
	bool done;

	f->object = object;
	f->code_before = python.PyFunction_GetCode(object);
	python.Py_IncRef(f->code_before);
	/* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */
	f->is_generator = code_flags(f->code_before) & (0x20 | 0x80 | 0x200);
	done = is_inlined(f) ? set_code(f) : set_vectorcall(f);
	if (done)
		return true;
	python.Py_DecRef(f->code_before);
	python.Py_DecRef(f->object);
	f->object = f->code_before = NULL;
	return false;
}

void functions__unset(struct function *f)
{
	if (!f->object)
		return;
	if (f->code_set)
		unset_code(f);
	else
		unset_vectorcall(f);
	python.Py_DecRef(f->code_before);
	python.Py_DecRef(f->object);
	f->object = f->code_before = NULL;
}
