/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each of a recording's two processes gives up: docs/design.md, "Safety". */
#ifndef SONDE_ATTACH_PRIVILEGES_H
#define SONDE_ATTACH_PRIVILEGES_H

#include <stdbool.h>

/*
 * Keeps the capabilities that following processes and attaching needs, and, with
 * `signals`, the one to send a signal to another user's process. 0 or negative errno.
 */
int privileges__attacher(bool signals);
/* Keeps none and leaves root for the user behind sudo, or else for nobody. 0 or negative errno. */
int privileges__worker(void);

#endif
