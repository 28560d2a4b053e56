/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "export/profiles.h"

/* Writes the page with flame graphs of all profiles to e->out. 0 or negative errno. */
int flame__put_page(struct export *e, const struct profiles *p);
