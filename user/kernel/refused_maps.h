/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps that the kernel refuses, by their type, their size or for want of memory. libbpf gives up on the whole object
 * at the first of them. The object is then opened anew and loaded without that map, and the programs that use it
 * count as refused.
 */
#ifndef SONDE_KERNEL_REFUSED_MAPS_H
#define SONDE_KERNEL_REFUSED_MAPS_H

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

/* After a failed load: adds the map that libbpf's log says it failed for. false: it failed for something else. */
bool refused_maps__add(struct refused_maps *r, const struct bpf_object *obj, const char *log);
/* Before loading: has libbpf leave them out. */
void refused_maps__leave_out(const struct refused_maps *r, struct bpf_object *obj);
/* Does the relocated program use one of them? Then why (of size len) says which. */
bool refused_maps__used(const struct refused_maps *r, const struct bpf_insn *insns, size_t n, char *why, size_t len);

#endif
