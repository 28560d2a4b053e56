/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a test asks for by the environment's SONDE_TEST, a list with commas. */
#ifndef SONDE_UTIL_TEST_SWITCH_H
#define SONDE_UTIL_TEST_SWITCH_H

#include <stdbool.h>
#include <stddef.h>

/* Is this item in the list? */
bool test_switch__is_set(const char *word);
/* Does the list have an entry "PREFIX:GLOB" whose glob matches the name? */
bool test_switch__matches(const char *prefix, const char *name);
/* The text behind the first entry "PREFIX:TEXT" into buf; false: there is none. */
bool test_switch__text(const char *prefix, char *buf, size_t size);

#endif
