/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF maps that control what programs read from a target's memory, or how. Only the attacher can write them: the
 * worker, which reads untrusted data, sends requests, and each value is checked. Families declare such maps by
 * STEERING.
 */
#pragma once

#include "core/types.h"
#include "util/registry.h"

#include <stdbool.h>

#define STEERING_MAX 16 /* maps */

struct steering {
	const char *map;
	u32 key_size, value_size; /* bytes */
	bool once; /* a key that was set can't be set again to another value */
	/*
	 * May the worker set this value? NULL: any value. Runs in the attacher: it must trust no input and take no
	 * time.
	 */
	bool (*check)(const void *key, const void *value);
};

#define STEERING(ident) REGISTER(steering, sonde_steering, ident)

/* The maps' descriptors, in the order of their declarations; -1: not in this recording. */
struct steering_maps {
	int fds[STEERING_MAX];
};

u32 steering__count(void);
const struct steering *steering__at(u32 i);
/* The number of a map, or -ENOENT. */
int steering__find(const char *map);
/*
 * In the attacher: sets a key, or deletes it if value is NULL. flags: of bpf_map_update_elem. Returns 0 or negative
 * errno.
 */
int steering__set(const struct steering_maps *maps, u32 i, const void *key, const void *value, u64 flags);

/* For checks: may this be an address of a program's data? */
bool steering__is_address(u64 address);
/* Is the address in a file mapping of the process, or in the zero-filled memory directly behind it (.bss)? */
bool steering__in_file(u32 pid, u64 address);
