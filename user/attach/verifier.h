/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The attacher's side of site/verify_site.h: a child without privileges parses the file, one child a file. */
#ifndef SONDE_ATTACH_VERIFIER_H
#define SONDE_ATTACH_VERIFIER_H

#include "core/types.h"

#include <sys/types.h>

struct verifier;

/* Kills its child by number: the process must wait for its children itself and say which have ended. */
struct verifier *verifier__new(void);
void verifier__free(struct verifier *v);
/* A child of the process has been waited for, and its number is free: it is forgotten if it was the verifier's. */
void verifier__ended(struct verifier *v, pid_t pid);
/*
 * verdicts (enum site_verdict) for n offsets, ATTACHER_SITES_MAX at most; true: all are SITE_OK. *file: the descriptor to
 * probe by, which is open for as long as the next call is not made: what was examined is exactly that open file.
 */
bool verifier__check(struct verifier *v, int fd, const u64 *offsets, u32 n, bool returns, u8 *verdicts, int *file);

#endif
