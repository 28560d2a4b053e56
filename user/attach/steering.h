/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF maps that steer what programs read of a target's memory, or how. The attacher alone can write them: the worker,
 * which reads what targets wrote, asks it to, and each value is checked. Families declare such maps by STEERING.
 */
#ifndef SONDE_ATTACH_STEERING_H
#define SONDE_ATTACH_STEERING_H

#include "core/types.h"

#include <stdbool.h>

#define STEERING_MAX 16 /* maps */

struct steering {
	const char *map;
	u32 key_size, value_size; /* bytes */
	bool once; /* a key that was set is not set again, with another value */
	/* Is the value one that the worker may set? NULL: each is. In the attacher: it must believe nothing and take no time. */
	bool (*check)(const void *key, const void *value);
};

#define STEERING(ident)                                                                                              \
	static const struct steering ident;                                                                          \
	static const struct steering *const ident##_entry __attribute__((used, section("sonde_steering"))) = &ident; \
	static const struct steering ident

/* The maps' descriptors, in the order of their declarations; -1: not in this recording. */
struct steering_maps {
	int fds[STEERING_MAX];
};

u32 steering__count(void);
const struct steering *steering__at(u32 i);
/* Its number, or -ENOENT. */
int steering__find(const char *map);
/* In the attacher: sets a key, or with value NULL deletes it. flags: of bpf_map_update_elem. 0 or negative errno. */
int steering__set(const struct steering_maps *maps, u32 i, const void *key, const void *value, u64 flags);

/* For checks: may it be an address of a program's data? */
bool steering__is_address(u64 address);
/* Does the address lie in what the process maps of a file, or in the zeroed memory right behind that? */
bool steering__in_file(u32 pid, u64 address);

#endif
