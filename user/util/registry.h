/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Structs that files register by address in a linker section, so that a new command, report, format, family or finding
 * changes no list. The first member of each is its name.
 */
#pragma once

/* REGISTER(report, sonde_reports, ident) = {...}; */
#define REGISTER(type, registry, ident)                                                                   \
	static const struct type ident;                                                                   \
	static const struct type *const ident##_entry __attribute__((used, section(#registry))) = &ident; \
	static const struct type ident

/* The section's bounds; weak, so that a program without registered structs links. */
#define REGISTRY(type, registry)                                                    \
	extern const struct type *const __start_##registry[] __attribute__((weak)); \
	extern const struct type *const __stop_##registry[] __attribute__((weak))

/* Sets `at` to each pointer in turn, in no particular order. */
#define REGISTRY_EACH(registry, at) \
	for (__typeof__(&__start_##registry[0]) at = __start_##registry; at < __stop_##registry; at++)

/* Finds a struct by name; NULL: there is none. */
#define REGISTRY_FIND(registry, name) \
	((__typeof__(__start_##registry[0]))registry__find((void *)__start_##registry, (void *)__stop_##registry, name))
/* Returns the struct after `last` (NULL: the first) by name, or as `before` orders them if not NULL; NULL: none. */
#define REGISTRY_NEXT(registry, last, before)                                                                     \
	((__typeof__(__start_##registry[0]))registry__next((void *)__start_##registry, (void *)__stop_##registry, \
							   last, before))

const void *registry__find(const void *const *start, const void *const *stop, const char *name);
const void *registry__next(const void *const *start, const void *const *stop, const void *last,
			   int (*order)(const void *a, const void *b));
