/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds where a CPython without USDT probes imports modules, collects garbage and starts threads; see
 * docs/python-events.md.
 */
#pragma once

#include "site/place.h"

#define IMPORT_ENDS_MAX 4

/* import_find_and_load, which compilers inline into its only caller. */
struct import_place {
	u64 audit; /* address of the call of the audit hooks */
	bool name_fourth; /* the module is that call's fourth argument, else its third */
	u64 after_calls[IMPORT_ENDS_MAX]; /* after the calls of importlib, with and without -X importtime */
	u32 n_done;
};

/* Returns 0, or -ENOENT with the reason in *why. */
int python_find__import(struct elf *elf, struct placer *placer, struct import_place *out, const char **why);
/*
 * Symbols of a function and of its clones by the compiler: NAME, NAME.isra.0, NAME.constprop.1, ... Returns their
 * number.
 */
u32 python_find__clones(struct elf *elf, const char *name, struct elf_symbol *out, u32 max);
/* Py_Version (PY_VERSION_HEX); 0: older than 3.11, which does not export it. */
u32 python_find__version(struct elf *elf);
