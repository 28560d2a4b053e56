// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compiles only if sonde's declarations of NVML's functions and constants are those of NVIDIA's header. */
#include <nvml.h>

#include "nvml/nvml_api.h"

/* The types' names are the header's here, as nvml_api.h then declares none. */
#define COMPARE(member, function, parameters)                                                          \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&function),                             \
						    __typeof__(((struct nvml_functions *)0)->member)), \
		       "signature of " #function);
NVML_FUNCTIONS(COMPARE)

_Static_assert(NVML_TEXT >= NVML_DEVICE_NAME_V2_BUFFER_SIZE && NVML_TEXT >= NVML_DEVICE_UUID_V2_BUFFER_SIZE &&
		       NVML_TEXT >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE,
	       "buffers of texts");
_Static_assert(NVML_VALUE_NOT_AVAILABLE == -1, "memory of a process that is not known");
