/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps that the kernel refuses, because of their type, their size or for lack of memory. libbpf fails as a whole at
 * the first of them. The object is then opened again and loaded without that map, and the programs that use it count
 * as refused.
 */
#pragma once

#include "core/types.h"

#include <stddef.h>

#define REFUSED_MAPS_MAX 64

struct bpf_insn;
struct bpf_object;

struct refused_maps {
	struct {
		char name[64], why[64];
		u32 index; /* in the object */
	} list[REFUSED_MAPS_MAX];
	u32 n;
};

/*
 * After a failed load: adds the map that failed according to libbpf's log. false: the load failed for another reason.
 */
bool refused_maps__add(struct refused_maps *r, const struct bpf_object *obj, const char *log);
/* Before loading: makes libbpf leave the maps out. */
void refused_maps__leave_out(const struct refused_maps *r, struct bpf_object *obj);
/* Does the relocated program use one of them? Then why (of size len) names it. */
bool refused_maps__used(const struct refused_maps *r, const struct bpf_insn *insns, size_t n, char *why, size_t len);
