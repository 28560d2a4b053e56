/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Libraries on disk that no process maps yet. */
#pragma once

#include "process/process.h"

struct session;
struct object;

/* Creates the child process that searches for them, while this process has its privileges. */
void preattach__find(struct session *s);
/* Notes where a mapped file shows that a Python has its packages; the child searches there, too. */
void preattach__note(struct session *s, const char *path);
/* Lets the child begin, once the running processes have been scanned. */
void preattach__search(struct session *s);
/* Returns whether the next function does not have to wait for the child. */
bool preattach__is_ready(struct session *s);
/* Probes the next of them; s->preattach is NULL after the last. Waits for the child if necessary. */
void preattach__attach_next(struct session *s);
/* Waits for the child if it has ended. */
void preattach__reap(struct session *s);
/* A process has mapped the object. If not all of its probes were attached, counts the attach gap. */
void preattach__mapped(struct session *s, struct object *o, const struct mapping *m);
void preattach__free(struct session *s);
