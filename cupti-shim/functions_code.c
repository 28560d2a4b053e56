// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CPython 3.11 runs a Python function that Python code calls without its vectorcall, and from 3.13 on it does so for
 * an __init__ when it makes an object. So the function gets a copy of its code object with a prologue of two
 * instructions: a constant is loaded, and its operator ~ makes a guard, which stays at the bottom of the frame's stack
 * of values. When the frame ends, by a return or by an exception, the interpreter frees what is on that stack, and the
 * guard's deallocation is the end of the call. Nothing else changes: arguments, variables, the number of frames and the
 * lines of the code are the same.
 *
 * The format of code objects is that of 3.11 to 3.15 (Objects/exception_handling_notes.txt, Objects/locations.md).
 */
#include "functions.h"
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* Include/opcode.h of 3.11, later Include/opcode_ids.h; resume 0: not used, or not known */
static const struct opcodes {
	uint8_t pop_top, unary_invert, load_const, make_cell, extended_arg, copy_free_vars, resume;
} versions[] = {
	[11] = { 1, 15, 100, 135, 144, 149, 151 },
	[13] = { 32, 41, 83, 94, 71, 62, 149 },
	[14] = { 31, 40, 82, 97, 69, 60, 128 },
	[15] = { 29, 38, 81, 96, 67, 58, 128 },
};

static const struct opcodes *opcodes(void)
{
	return &versions[python.minor];
}

bool functions__knows_code(void)
{
	return (size_t)python.minor < sizeof(versions) / sizeof(*versions) && opcodes()->resume;
}

/* Include/typeslots.h, Include/object.h */
#define SLOT_NB_INVERT	      27
#define SLOT_TP_DEALLOC	      52
#define TYPE_NO_INSTANTIATION (1 << 7)
#define SLOT_TP_METHODS	      64
#define METHOD_NO_ARGUMENTS   4
#define NO_LOCATION	      15
#define PROLOGUE_MAX	      16
#define CACHE		      0 /* an opcode, in all versions */
#define FREE_GUARDS_MAX	      1024

struct object_head {
	ssize_t references;
	PyObject *type;
};

struct factory {
	struct object_head head;
	struct function *function;
};

struct guard {
	struct object_head head;
	const struct function *function;
	union {
		uint64_t start;
		struct guard *next; /* in the list of free guards */
	};
};

/* As in Include/object.h */
struct type_slot {
	int slot;
	void *function;
};
struct method {
	const char *name;
	PyObject *(*function)(PyObject *o, PyObject *arguments);
	int flags;
	const char *doc;
};
struct type_spec {
	const char *name;
	int size, item_size;
	unsigned flags;
	struct type_slot *slots;
};

static PyObject *factory_type, *guard_type;
static struct guard *free_guards; /* under the GIL */
static uint32_t n_free_guards;

static PyObject *none(void)
{
	python.Py_IncRef(python._Py_NoneStruct);
	return python._Py_NoneStruct;
}

/* ~factory, at the start of each call */
static PyObject *call_starts(PyObject *o)
{
	struct function *f = ((struct factory *)o)->function;
	struct guard *g;

	if (f->is_compile)
		functions__compiler_starts();
	if (f->is_compile || !functions__is_active())
		return none();
	if (f->is_generator) {
		functions__record(f, 0, 0, shim__now(), false);
		return none();
	}
	g = free_guards;
	if (g) {
		free_guards = g->next;
		n_free_guards--;
	} else {
		g = malloc(sizeof(*g));
		if (!g)
			return none();
	}
	*g = (struct guard){ .head = { 1, guard_type }, .function = f, .start = shim__now() };
	return (PyObject *)g;
}

static void call_ends(PyObject *o)
{
	struct guard *g = (struct guard *)o;

	if (functions__is_active())
		functions__record(g->function, 0, 0, g->start, !!python.PyErr_Occurred());
	if (n_free_guards >= FREE_GUARDS_MAX) {
		free(g);
		return;
	}
	g->next = free_guards;
	free_guards = g;
	n_free_guards++;
}

static void factory_freed(PyObject *o)
{
	free(o);
}

/* A pickled function has 0 instead of the factory: what ~ makes of it does nothing on the stack. */
static PyObject *reduce(PyObject *o, PyObject *ignored)
{
	PyObject *result = python.PyTuple_New(2), *arguments = python.PyTuple_New(1);

	if (!result || !arguments)
		return NULL;
	python.PyTuple_SetItem(arguments, 0, python.PyLong_FromLong(0));
	python.Py_IncRef(python.PyLong_Type);
	python.PyTuple_SetItem(result, 0, python.PyLong_Type);
	python.PyTuple_SetItem(result, 1, arguments);
	return result;
}

static bool make_types(void)
{
	static struct method methods[] = { { "__reduce__", reduce, METHOD_NO_ARGUMENTS, NULL }, {} };
	static struct type_slot factory_slots[] = { { SLOT_NB_INVERT, (void *)call_starts },
						    { SLOT_TP_DEALLOC, (void *)factory_freed },
						    { SLOT_TP_METHODS, methods },
						    {} };
	static struct type_slot guard_slots[] = { { SLOT_TP_DEALLOC, (void *)call_ends }, {} };
	static struct type_spec factory = { "sonde.function", sizeof(struct factory), 0, TYPE_NO_INSTANTIATION,
					    factory_slots };
	static struct type_spec guard = { "sonde.call", sizeof(struct guard), 0, TYPE_NO_INSTANTIATION, guard_slots };

	if (!factory_type)
		factory_type = python.PyType_FromSpec(&factory);
	if (!guard_type)
		guard_type = python.PyType_FromSpec(&guard);
	return factory_type && guard_type;
}

struct bytes {
	uint8_t *at;
	size_t n, size;
};

static void put(struct bytes *b, uint8_t byte)
{
	if (b->n < b->size)
		b->at[b->n++] = byte;
}

static void put_all(struct bytes *b, const uint8_t *from, size_t n)
{
	while (n--)
		put(b, *from++);
}

/* Numbers of the exception table: 6 bits a byte, the highest first; 0x40: more follow. */
static void put_number(struct bytes *b, uint32_t n, uint8_t first)
{
	int shift = 30;

	while (shift && !(n >> shift))
		shift -= 6;
	for (; shift; shift -= 6, first = 0)
		put(b, (n >> shift & 63) | 64 | first);
	put(b, (n & 63) | first);
}

static uint32_t number(const uint8_t **p, const uint8_t *end)
{
	uint32_t n = 0;
	uint8_t byte = 64;

	while (byte & 64 && *p < end) {
		byte = *(*p)++;
		n = n << 6 | (byte & 63);
	}
	return n;
}

/* All code behind the prologue has moved by its length, and has `depth` more values on the stack. */
static void move_exceptions(struct bytes *out, const uint8_t *p, size_t n, uint32_t moved, uint32_t depth)
{
	const uint8_t *end = p + n;

	while (p < end) {
		uint32_t start = number(&p, end), length = number(&p, end), target = number(&p, end);
		uint32_t flags = number(&p, end); /* depth, and a bit */

		put_number(out, start + moved, 0x80);
		put_number(out, length, 0);
		put_number(out, target + moved, 0);
		put_number(out, flags + 2 * depth, 0);
	}
}

/* The prologue has no line. false: an entry of the table lies across its place. */
static bool move_lines(struct bytes *out, const uint8_t *p, size_t n, size_t at, size_t moved)
{
	const uint8_t *end = p + n;
	size_t unit = 0;

	while (p < end && unit < at) {
		unit += (*p & 7) + 1;
		do
			put(out, *p++);
		while (p < end && !(*p & 0x80));
	}
	for (size_t left = moved; left; left -= left < 8 ? left : 8)
		put(out, 0x80 | NO_LOCATION << 3 | ((left < 8 ? left : 8) - 1));
	put_all(out, p, (size_t)(end - p));
	return unit == at;
}

/* Where the prologue of a function that is no generator is inserted, in units of 2 bytes: behind its RESUME. */
static ssize_t behind_resume(const uint8_t *code, size_t units)
{
	const struct opcodes *o = opcodes();

	for (size_t i = 0; i < units; i++) {
		uint8_t op = code[2 * i];

		if (op == o->resume && !code[2 * i + 1]) {
			/* and its cache, which 3.15 has */
			do
				i++;
			while (i < units && code[2 * i] == CACHE);
			return (ssize_t)i;
		}
		if (op != o->copy_free_vars && op != o->make_cell && op != o->extended_arg)
			break;
	}
	return -1;
}

static void put_op(struct bytes *out, uint8_t op, size_t argument)
{
	for (int shift = 24; shift; shift -= 8)
		if (argument >> shift) {
			put(out, opcodes()->extended_arg);
			put(out, argument >> shift & 255);
		}
	put(out, op);
	put(out, argument & 255);
}

static PyObject *attribute(PyObject *code, const char *name, const uint8_t **bytes, size_t *n)
{
	PyObject *o = python.PyObject_GetAttrString(code, name);
	ssize_t size = 0;
	char *at = NULL;

	if (o && bytes && python.PyBytes_AsStringAndSize(o, &at, &size))
		size = 0;
	if (bytes) {
		*bytes = (const uint8_t *)at;
		*n = (size_t)size;
	}
	return o;
}

/* Takes the reference to the value. */
static bool change(PyObject *changes, const char *name, PyObject *value)
{
	bool done = value && !python.PyDict_SetItemString(changes, name, value);

	if (value)
		python.Py_DecRef(value);
	return done;
}

static PyObject *factory_of(struct function *f)
{
	struct factory *o = malloc(sizeof(*o));

	if (o)
		*o = (struct factory){ .head = { 1, factory_type }, .function = f };
	return (PyObject *)o;
}

/* The constants with the factory as the last one. */
static PyObject *more_constants(struct function *f, PyObject *constants, size_t n)
{
	PyObject *more = python.PyTuple_New((ssize_t)n + 1), *last = factory_of(f);

	if (!more || !last)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		PyObject *o = python.PyTuple_GetItem(constants, (ssize_t)i);

		python.Py_IncRef(o);
		python.PyTuple_SetItem(more, (ssize_t)i, o);
	}
	python.PyTuple_SetItem(more, (ssize_t)n, last);
	return more;
}

struct parts {
	PyObject *code, *constants, *lines, *exceptions, *stack;
	const uint8_t *code_bytes, *line_bytes, *exception_bytes;
	size_t code_n, line_n, exception_n;
};

/* Fills the dictionary of changes for code.replace(). */
static bool make_changes(struct function *f, const struct parts *p, bool is_generator, PyObject *changes)
{
	ssize_t n = python.PyTuple_Size(p->constants);
	ssize_t at = is_generator ? 0 : behind_resume(p->code_bytes, p->code_n / 2);
	size_t size = (p->code_n + p->line_n + p->exception_n) * 2 + 64;
	uint8_t prologue_bytes[PROLOGUE_MAX];
	struct bytes prologue = { prologue_bytes, 0, sizeof(prologue_bytes) };
	struct bytes code = { malloc(3 * size), 0, size };
	struct bytes lines = { code.at + size, 0, size }, exceptions = { code.at + 2 * size, 0, size };
	bool done = code.at && n >= 0 && at >= 0;
	size_t units;

	put_op(&prologue, opcodes()->load_const, (size_t)n);
	put_op(&prologue, opcodes()->unary_invert, 0);
	if (is_generator)
		put_op(&prologue, opcodes()->pop_top, 0);
	units = prologue.n / 2;
	if (done) {
		put_all(&code, p->code_bytes, (size_t)at * 2);
		put_all(&code, prologue.at, prologue.n);
		put_all(&code, p->code_bytes + at * 2, p->code_n - (size_t)at * 2);
		move_exceptions(&exceptions, p->exception_bytes, p->exception_n, (uint32_t)units, !is_generator);
		done = move_lines(&lines, p->line_bytes, p->line_n, (size_t)at, units) &&
		       change(changes, "co_code", python.PyBytes_FromStringAndSize((char *)code.at, (ssize_t)code.n)) &&
		       change(changes, "co_linetable",
			      python.PyBytes_FromStringAndSize((char *)lines.at, (ssize_t)lines.n)) &&
		       change(changes, "co_exceptiontable",
			      python.PyBytes_FromStringAndSize((char *)exceptions.at, (ssize_t)exceptions.n)) &&
		       change(changes, "co_consts", more_constants(f, p->constants, (size_t)n)) &&
		       change(changes, "co_stacksize", python.PyLong_FromLong(python.PyLong_AsLong(p->stack) + 1));
	}
	free(code.at);
	return done;
}

PyObject *functions__make_code(struct function *f, PyObject *code, bool is_generator)
{
	struct parts p = {};
	PyObject *changes = python.PyDict_New(), *replace = attribute(code, "replace", NULL, NULL), *made = NULL;
	PyObject *arguments = python.PyTuple_New(0);
	PyObject **const all[] = { &p.code,  &p.constants, &p.lines, &p.exceptions,
				   &p.stack, &changes,	   &replace, &arguments };
	bool complete = true;

	p.code = attribute(code, "co_code", &p.code_bytes, &p.code_n);
	p.constants = attribute(code, "co_consts", NULL, NULL);
	p.lines = attribute(code, "co_linetable", &p.line_bytes, &p.line_n);
	p.exceptions = attribute(code, "co_exceptiontable", &p.exception_bytes, &p.exception_n);
	p.stack = attribute(code, "co_stacksize", NULL, NULL);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		complete &= !!*all[i];
	if (complete && make_types() && make_changes(f, &p, is_generator, changes))
		made = python.PyObject_Call(replace, arguments, changes);
	python.PyErr_Clear();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*all[i])
			python.Py_DecRef(*all[i]);
	if (!made)
		f->why = "its code is not as CPython's compiler makes it";
	return made;
}
