/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capture ranges (record --capture-range): processes are recorded only between two calls of theirs. */
#pragma once

#include "core/capture.h"
#include "core/event.h"

FAMILY(capture, 0x15, FAMILY_ON_REQUEST, "where capture ranges begin and end (record --capture-range)");
