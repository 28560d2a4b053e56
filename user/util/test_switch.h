/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conditions that tests simulate (docs/test-switches.md). What people install has none: these functions return false
 * there. tests/switches/ replaces them in build/test/sonde, the program that tests run, by ones that read the
 * environment's SONDE_TEST, a list with commas.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct session;

/* Returns whether the list has this item. */
bool test_switch__is_set(const char *item);
/* Returns whether the list has an item "PREFIX:GLOB" whose glob matches the name. */
bool test_switch__matches(const char *prefix, const char *name);
/* Copies the text of the first item "PREFIX:TEXT" to buf; false: there is none. */
bool test_switch__text(const char *prefix, char *buf, size_t size);
/*
 * With an item "captured:FILE" does what this process could try after its input has compromised it, and prints the
 * results. s: the recording, or NULL. processes: also what concerns other processes.
 */
void test_switch__captured(struct session *s, bool processes);
