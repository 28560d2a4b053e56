/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records calls of the Python functions that a tracer names. docs/python-functions.md explains how they are
 * intercepted and how the tracer names them.
 */
#pragma once

#include "python.h"

#include "core/shim_functions.h"

#define FUNCTIONS_MAX 2048

/*
 * A function that a tracer has named, or one of PyTorch's. Its calls may outlast a recording, so it is never freed; a
 * later recording that names it again uses it again.
 */
struct function {
	char *module, *name; /* module NULL: one of PyTorch's */
	uint64_t label; /* id of what reports show: MODULE:QUALNAME */
	char *domain; /* "": none */
	uint64_t domain_id;
	uint32_t colour; /* ARGB; 0: none */
	bool is_named; /* by the present configuration */
	PyObject *object; /* the function object, with a reference; NULL: calls are not intercepted */
	PyObject *code_before, *code_set; /* with references; code_set: only in CPython 3.11 (functions_code.c) */
	bool is_generator; /* a call only makes the generator, coroutine or asynchronous generator */
	bool is_compile; /* torch.compile, which is not recorded: see functions_set.c */
	bool has_shapes; /* records the shapes of tensors; the name is the class of the first argument */
	const char *why; /* reason of a refusal */
	bool reported; /* its state is reported */
};

/* functions.c: begins and ends recordings; by the shim's thread */

void functions__step(uint32_t requested, bool came, bool left);
/* The process ends: hands over what there is. */
void functions__end(void);
/* Is a tracer served, or are calls still intercepted? */
bool functions__is_busy(void);
/* Runs in the child of a fork. */
void functions__after_fork(uint32_t inherited);
/* Does this program have the functions from sonde's environment, and is it Python? */
bool functions__is_launched(void);
/* Is it the command itself, which may wait for the probes? Its children may outlive the recording. */
bool functions__is_command(void);

/* Is a thread to intercept calls, or are calls recorded? By any thread. */
bool functions__is_active(void);
/* A call has ended. class: id of its name instead of the function's; 0: the function's. */
void functions__record(const struct function *f, uint64_t class, uint64_t shapes, uint64_t start, bool failed);
/* The id of a text. */
uint64_t functions__text(const char *text);
void functions__report(const struct function *f, enum function_state is, const char *why);
/* Python as a whole can't be traced (refused), or there is none yet. */
void functions__report_python(bool refused, const char *why);

/* functions_list.c: the functions to trace; by the thread that has the GIL */

/* Reads what to trace, and intercepts what can be found. Returns whether something is missing. */
bool functions__search(bool report_all);
void functions__unset_all(void);
/* Undoes what is changed in code objects; why: the reason, NULL: for now. */
void functions__unset_codes(const char *why);

/* functions_thread.c: the thread that asks for the GIL */

/* Returns false if no thread runs. came: another tracer has come. */
bool functions_thread__request(bool requested, bool came);
void functions_thread__after_fork(void);
/* functions.c: it has made everything as it was, and no tracer has come meanwhile. */
void functions__stopped(void);

/* functions_find.c */

/* The function object that a name stands for, with a new reference; NULL: not yet, or f->why has the reason. */
PyObject *functions__find(struct function *f);
/* The value of a name in the namespace of a module or class; borrowed, or NULL. Runs no code of the program. */
PyObject *functions__member(PyObject *owner, const char *name);
/* Follows __wrapped__, with which decorators name the function that they call. Borrowed. */
PyObject *functions__innermost(PyObject *function);

/* functions_set.c: intercepts calls. The GIL is held. */

/* Returns false, mostly with f->why. Takes the reference to the function object. */
bool functions__set(struct function *f, PyObject *object);
void functions__unset(struct function *f);
/* Before a search: notices torch.compile. */
void functions__watch_compiler(void);
/* torch.compile is called. */
void functions__compiler_starts(void);
/* Undoes the watch. */
void functions__end_watch(void);

/* functions_code.c: where CPython ignores the vectorcall */

bool functions__knows_code(void);

/* A code object with a prologue that reports to f; NULL: f->why has the reason. */
PyObject *functions__make_code(struct function *f, PyObject *code, bool is_generator);

/* functions_torch.c */

/* Calls add() for each function of PyTorch to be traced; again and again, as classes come. */
void functions__find_torch(void (*add)(PyObject *function, const char *name, bool has_shapes));
/* torch.compile; borrowed. NULL: none. *is_imported: there is a module torch, whose import may not be complete. */
PyObject *functions__torch_compile(bool *is_imported);
/* Has the program called torch.compile? */
bool functions__has_compiled(void);
/* The shapes of the tensors among the arguments of a call, as the id of a text; 0: none. */
uint64_t functions__shapes(PyObject *const *args, size_t n);
