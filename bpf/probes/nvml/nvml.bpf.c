// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* No program: a child of the recording reads NVML (nvml_read.c). The events and the option are declared here. */
#include "core/sonde.bpf.h"
#include "nvml.h"

OPTION_NUMBER(nvml, period, "ms", "time between two readings of NVML, 10 to 60,000; without it 1,000");
