/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passes to the BPF stack walker which processes run a CPython, the addresses, and the layouts. */
#pragma once

#include "process/process.h"

struct session;
struct file_facts;
struct python_known;

/* NULL: no memory. */
struct python_known *python_known__new(void);
/* Called before a file is probed: if it is a CPython, processes that run it are known from their first event on. */
void python__examined(struct session *s, struct file_facts *file, const struct mapping *m);
/*
 * If the file is a CPython, the stacks of its processes can be walked from here on; if not, reports why. May be called
 * for several families of one mapping.
 */
void python__mapped(struct session *s, struct file_facts *file, const struct mapping *m);
/* Returns whether the recording walks Python stacks. */
bool python__is_walked(const struct session *s);
/* Tries again to enter processes whose data was not mapped yet when their code was. */
void python__enter_late(struct session *s);
/* Drops the facts about a file that is overwritten. */
void python__forget_file(struct session *s, u64 dev, u64 ino, u32 generation);
