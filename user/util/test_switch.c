// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/test_switch.h"

#define REPLACED_IN_TESTS __attribute__((weak))

REPLACED_IN_TESTS bool test_switch__is_set(const char *item)
{
	return false;
}

REPLACED_IN_TESTS bool test_switch__matches(const char *prefix, const char *name)
{
	return false;
}

REPLACED_IN_TESTS bool test_switch__text(const char *prefix, char *buf, size_t size)
{
	return false;
}

REPLACED_IN_TESTS void test_switch__captured(struct session *s, bool processes)
{
}
