/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A mix of operations that the kernel has tracepoints for. */
#pragma once

#include "core/types.h"

/* Forks a child that does this work for `ns`, and waits for it. Reads sonde's own file; writes nothing. */
void calibrate__work_in_child(u64 ns);
