/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The attacher's side of site/verify_site.h: a child without privileges parses the file, one child per file. */
#pragma once

#include "core/types.h"

#include <sys/types.h>

struct verifier;

/*
 * The verifier kills its child by pid. So the calling process must wait for its children itself, and pass the pid of
 * each that has ended to verifier__ended.
 */
struct verifier *verifier__new(void);
void verifier__free(struct verifier *v);
/* A child of the process has been waited for, and its pid may be reused: the verifier drops it if it was its own. */
void verifier__ended(struct verifier *v, pid_t pid);
/*
 * Fills verdicts (enum site_verdict) for n offsets, at most ATTACHER_SITES_MAX; true: all are SITE_OK. *file: the
 * descriptor to attach with, open until the next call: it is exactly the open file that was examined.
 */
bool verifier__check(struct verifier *v, int fd, const u64 *offsets, u32 n, bool returns, u8 *verdicts, int *file);
