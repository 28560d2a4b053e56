/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Switches for tests in the environment's SONDE_TEST, a list with commas */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the list has this item. */
bool test_switch__is_set(const char *item);
/* Returns whether the list has an item "PREFIX:GLOB" whose glob matches the name. */
bool test_switch__matches(const char *prefix, const char *name);
/* Copies the text of the first item "PREFIX:TEXT" to buf; false: there is none. */
bool test_switch__text(const char *prefix, char *buf, size_t size);
