/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads objects of a running CPython 3.8 to 3.15: their types, dictionaries and sets. All of it is untrusted. */
#pragma once

#include "python/snapshot.h"

enum object_type {
	OBJECT_OTHER,
	OBJECT_COROUTINE, /* and generators, which have the same struct */
	OBJECT_AWAITS_GENERATOR, /* the awaitable of an asynchronous generator, or a wrapper of a coroutine */
	OBJECT_DICT,
	OBJECT_SET,
	OBJECT_METHOD, /* a bound method */
	OBJECT_FUNCTION,
	OBJECT_MODULE,
	OBJECT_INT,
	OBJECT_STREAM, /* asyncio.StreamReader */
	OBJECT_NONE,
	OBJECT_TUPLE,
	OBJECT_LIST,
	OBJECT_CELL, /* a variable of a closure */
	OBJECT_PARTIAL, /* functools.partial */
	OBJECT_FUTURE, /* of asyncio, but no task */
	OBJECT_TRANSPORT, /* asyncio's, of a socket */
};

/* Offsets that all these versions have in common. */
#define OBJECT_TYPE    8 /* PyObject.ob_type */
#define MODULE_DICT    16 /* PyModuleObject.md_dict */
#define METHOD_SELF    24 /* PyMethodObject.im_self */
#define WEAKREF_OBJECT 16 /* PyWeakReference.wr_object */
#define CELL_OBJECT    16 /* PyCellObject.ob_ref */
#define PARTIAL_TUPLE  24 /* partialobject.args */
#define AWAITS_OBJECT  16 /* of the objects OBJECT_AWAITS_GENERATOR: the generator or coroutine */

/* Could it be the address of an object? */
static inline bool object__is_address(u64 address)
{
	return address >= 4096 && !(address & 7) && !(address >> 47);
}

enum object_type object__type(struct snapshot *l, u64 object);
/* The value of a key, an ASCII str, in a dict; 0: it is not there. */
u64 object__item(struct snapshot *l, u64 dict, const char *key);
/* The value of a global name of a module that the interpreter has imported; 0: there is none. */
u64 object__of_module(struct snapshot *l, u64 interpreter, const char *module, const char *name);
/* The value of an attribute of an instance of a class without slots; 0: there is none. */
u64 object__attribute(struct snapshot *l, u64 instance, const char *name);
/* The value of an int from 0 to 2^30 - 1; -1: it is something else. */
s64 object__number(struct snapshot *l, u64 object);
/* Calls fn for up to max values of a dict that is not split, such as one without instance. */
void object__each_value(struct snapshot *l, u64 dict, u32 max, void (*fn)(struct snapshot *l, u64 value, void *arg),
			void *arg);
/* Reads the first attributes of an instance of a class without slots; other words may be among them. */
#define OBJECT_WORDS 16
bool object__attribute_words(struct snapshot *l, u64 instance, u64 words[OBJECT_WORDS]);
/* Reads the first elements of a tuple or a list. Returns their number. */
u32 object__elements(struct snapshot *l, u64 sequence, u64 *words, u32 max);
/* The first attribute that is a set, of an instance of a class without slots; 0: there is none. */
u64 object__first_set(struct snapshot *l, u64 instance);
/*
 * Calls fn for each element of a set until it returns an error, and returns that; elements beyond `max` are left out.
 */
int object__each_element(struct snapshot *l, u64 set, u32 max, int (*fn)(struct snapshot *l, u64 element, void *arg),
			 void *arg);
