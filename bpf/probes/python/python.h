/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of CPython itself: garbage collections, imports, threads. Sources: Modules/gcmodule.c (Python/gc.c from
 * 3.13), Python/import.c, Python/thread.c and Include/pydtrace.d of 3.8 to 3.15. docs/python-events.md lists the
 * probe sites.
 */
#pragma once

#include "core/event.h"

FAMILY(python, 0x0b, FAMILY_ON_REQUEST, "CPython's garbage collections, imports and threads");

struct python_gc {
	struct span span;
	s64 collected DOC("objects freed; -1: not known");
	s64 uncollectable DOC("objects found that can't be freed; -1: not known");
	s32 generation DOC("the oldest one that was collected, from 0; -1: not known");
	u32 stack UNIT(stack) DOC("Python code that it interrupted");
} EVENT(python_gc, 0x0b01, "a garbage collection: the thread runs nothing else, and holds the GIL");

#define PYTHON_MODULE 120

struct python_import {
	struct span span;
	u32 stack UNIT(stack) DOC("Python code that imported it");
	u32 depth DOC("number of imports of this thread that contain it");
	char module[PYTHON_MODULE] DOC("its full name, cut after 119 bytes; what is not ASCII may be shown as ?");
} EVENT(python_import, 0x0b02, "an import of a module that was not in sys.modules: found, loaded and run, or failed");

struct python_thread_run {
	struct span span;
	u32 starter UNIT(task) DOC("thread (tid) that started it");
	u32 stack UNIT(stack) DOC("Python code of the starter");
} EVENT(python_thread_run, 0x0b03, "a thread that Python started, from its creation to its end");

/*
 * Cookies of sites, above the probe's number. For a USDT probe: the location of its first argument (struct usdt_arg).
 * For the others: the layout of a str.
 */
#define PYTHON_ARG_DISPLACEMENT 16 /* 16 bits, signed */
#define PYTHON_ARG_REGISTER	32 /* 4 bits */
#define PYTHON_ARG_MEMORY	(1ULL << 36)
#define PYTHON_ARG_WIDE		(1ULL << 37) /* 8 bytes, else 4 */
#define PYTHON_ARG_KNOWN	(1ULL << 38)
#define PYTHON_STR_AT		40 /* 8 bits: offset of the characters of an ASCII str */
#define PYTHON_NAME_FOURTH	(1ULL << 48) /* the module is the fourth argument of the call, else the third */
