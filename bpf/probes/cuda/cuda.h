/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of the CUDA runtime library. */
#pragma once

#include "probes/cuda/cuda_events.h"

FAMILY(cuda, 0x03, FAMILY_DEFAULT, "calls of the CUDA runtime (libcudart)");

CUDA_EVENTS(cuda, 0x03);
