/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by sandbox.c and forkserver.c. */
#pragma once

#include "sandbox/sandbox.h"

/* Runs in the child: gives up all rights and serves. */
void sandbox__serve(int sock, sandbox_serve *serve, void *arg) __attribute__((noreturn));
/* Kills a child of the server. */
void forkserver__end(struct forkserver *f, u32 number);
