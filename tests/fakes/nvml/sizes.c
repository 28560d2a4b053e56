// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compiles only if sonde's layouts and constants of NVML are those of NVIDIA's header. */
#include <stddef.h>

/* sonde's names, so that both headers fit into one file */
#define nvmlDevice_t			    own_nvmlDevice_t
#define nvmlReturn_t			    own_nvmlReturn_t
#define nvmlClockType_t			    own_nvmlClockType_t
#define nvmlTemperatureSensors_t	    own_nvmlTemperatureSensors_t
#define nvmlTemperatureThresholds_t	    own_nvmlTemperatureThresholds_t
#define nvmlPcieUtilCounter_t		    own_nvmlPcieUtilCounter_t
#define nvmlMemoryErrorType_t		    own_nvmlMemoryErrorType_t
#define nvmlEccCounterType_t		    own_nvmlEccCounterType_t
#define nvmlSamplingType_t		    own_nvmlSamplingType_t
#define nvmlValueType_t			    own_nvmlValueType_t
#define nvmlUtilization_t		    own_nvmlUtilization_t
#define nvmlMemory_t			    own_nvmlMemory_t
#define nvmlPciInfo_t			    own_nvmlPciInfo_t
#define nvmlValue_t			    own_nvmlValue_t
#define nvmlSample_t			    own_nvmlSample_t
#define nvmlFieldValue_t		    own_nvmlFieldValue_t
#define nvmlProcessInfo_t		    own_nvmlProcessInfo_t
#define nvmlProcessUtilizationSample_t	    own_nvmlProcessUtilizationSample_t
#define NVML_SUCCESS			    own_NVML_SUCCESS
#define NVML_ERROR_NOT_SUPPORTED	    own_NVML_ERROR_NOT_SUPPORTED
#define NVML_ERROR_NOT_FOUND		    own_NVML_ERROR_NOT_FOUND
#define NVML_ERROR_INSUFFICIENT_SIZE	    own_NVML_ERROR_INSUFFICIENT_SIZE
#define NVML_ERROR_DRIVER_NOT_LOADED	    own_NVML_ERROR_DRIVER_NOT_LOADED
#define NVML_ERROR_FUNCTION_NOT_FOUND	    own_NVML_ERROR_FUNCTION_NOT_FOUND
#define NVML_ERROR_GPU_IS_LOST		    own_NVML_ERROR_GPU_IS_LOST
#define NVML_CLOCK_SM			    own_NVML_CLOCK_SM
#define NVML_CLOCK_MEM			    own_NVML_CLOCK_MEM
#define NVML_TEMPERATURE_GPU		    own_NVML_TEMPERATURE_GPU
#define NVML_TEMPERATURE_THRESHOLD_SLOWDOWN own_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
#define NVML_PCIE_UTIL_TX_BYTES		    own_NVML_PCIE_UTIL_TX_BYTES
#define NVML_PCIE_UTIL_RX_BYTES		    own_NVML_PCIE_UTIL_RX_BYTES
#define NVML_MEMORY_ERROR_TYPE_CORRECTED    own_NVML_MEMORY_ERROR_TYPE_CORRECTED
#define NVML_MEMORY_ERROR_TYPE_UNCORRECTED  own_NVML_MEMORY_ERROR_TYPE_UNCORRECTED
#define NVML_VOLATILE_ECC		    own_NVML_VOLATILE_ECC
#define NVML_TOTAL_POWER_SAMPLES	    own_NVML_TOTAL_POWER_SAMPLES
#define NVML_GPU_UTILIZATION_SAMPLES	    own_NVML_GPU_UTILIZATION_SAMPLES
#define NVML_MEMORY_UTILIZATION_SAMPLES	    own_NVML_MEMORY_UTILIZATION_SAMPLES
#define NVML_VALUE_TYPE_DOUBLE		    own_NVML_VALUE_TYPE_DOUBLE
#define NVML_VALUE_TYPE_UNSIGNED_INT	    own_NVML_VALUE_TYPE_UNSIGNED_INT
#define NVML_VALUE_TYPE_UNSIGNED_LONG	    own_NVML_VALUE_TYPE_UNSIGNED_LONG
#define NVML_VALUE_TYPE_UNSIGNED_LONG_LONG  own_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
#include "nvml/nvml_api.h"
enum {
	own_NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
	own_NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
	own_NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
	own_NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
	own_NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
};
#undef nvmlDevice_t
#undef nvmlReturn_t
#undef nvmlClockType_t
#undef nvmlTemperatureSensors_t
#undef nvmlTemperatureThresholds_t
#undef nvmlPcieUtilCounter_t
#undef nvmlMemoryErrorType_t
#undef nvmlEccCounterType_t
#undef nvmlSamplingType_t
#undef nvmlValueType_t
#undef nvmlUtilization_t
#undef nvmlMemory_t
#undef nvmlPciInfo_t
#undef nvmlValue_t
#undef nvmlSample_t
#undef nvmlFieldValue_t
#undef nvmlProcessInfo_t
#undef nvmlProcessUtilizationSample_t
#undef NVML_SUCCESS
#undef NVML_ERROR_NOT_SUPPORTED
#undef NVML_ERROR_NOT_FOUND
#undef NVML_ERROR_INSUFFICIENT_SIZE
#undef NVML_ERROR_DRIVER_NOT_LOADED
#undef NVML_ERROR_FUNCTION_NOT_FOUND
#undef NVML_ERROR_GPU_IS_LOST
#undef NVML_CLOCK_SM
#undef NVML_CLOCK_MEM
#undef NVML_TEMPERATURE_GPU
#undef NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
#undef NVML_PCIE_UTIL_TX_BYTES
#undef NVML_PCIE_UTIL_RX_BYTES
#undef NVML_MEMORY_ERROR_TYPE_CORRECTED
#undef NVML_MEMORY_ERROR_TYPE_UNCORRECTED
#undef NVML_VOLATILE_ECC
#undef NVML_TOTAL_POWER_SAMPLES
#undef NVML_GPU_UTILIZATION_SAMPLES
#undef NVML_MEMORY_UTILIZATION_SAMPLES
#undef NVML_VALUE_TYPE_DOUBLE
#undef NVML_VALUE_TYPE_UNSIGNED_INT
#undef NVML_VALUE_TYPE_UNSIGNED_LONG
#undef NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
#undef NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
#undef NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
#undef NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL
#undef NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
#undef NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
#undef NVML_FUNCTIONS
#include <nvml.h>

#define SAME_SIZE(type) _Static_assert(sizeof(own_##type) == sizeof(type), "size of " #type)
#define SAME_PLACE(type, member)                                                                 \
	_Static_assert(offsetof(own_##type, member) == offsetof(type, member) &&                 \
			       sizeof(((own_##type *)0)->member) == sizeof(((type *)0)->member), \
		       #member " of " #type)
#define SAME_VALUE(name) _Static_assert((int)own_##name == (int)(name), #name)

SAME_SIZE(nvmlDevice_t);
SAME_SIZE(nvmlReturn_t);
SAME_SIZE(nvmlClockType_t);
SAME_SIZE(nvmlTemperatureSensors_t);
SAME_SIZE(nvmlTemperatureThresholds_t);
SAME_SIZE(nvmlPcieUtilCounter_t);
SAME_SIZE(nvmlMemoryErrorType_t);
SAME_SIZE(nvmlEccCounterType_t);
SAME_SIZE(nvmlSamplingType_t);
SAME_SIZE(nvmlValueType_t);
SAME_SIZE(nvmlUtilization_t);
SAME_SIZE(nvmlMemory_t);
SAME_SIZE(nvmlPciInfo_t);
SAME_SIZE(nvmlValue_t);
SAME_SIZE(nvmlSample_t);
SAME_SIZE(nvmlFieldValue_t);
SAME_SIZE(nvmlProcessInfo_t);
SAME_SIZE(nvmlProcessUtilizationSample_t);

SAME_PLACE(nvmlUtilization_t, gpu);
SAME_PLACE(nvmlUtilization_t, memory);
SAME_PLACE(nvmlMemory_t, total);
SAME_PLACE(nvmlMemory_t, free);
SAME_PLACE(nvmlMemory_t, used);
SAME_PLACE(nvmlPciInfo_t, busIdLegacy);
SAME_PLACE(nvmlPciInfo_t, domain);
SAME_PLACE(nvmlPciInfo_t, bus);
SAME_PLACE(nvmlPciInfo_t, device);
SAME_PLACE(nvmlPciInfo_t, busId);
SAME_PLACE(nvmlSample_t, timeStamp);
SAME_PLACE(nvmlSample_t, sampleValue);
SAME_PLACE(nvmlFieldValue_t, fieldId);
SAME_PLACE(nvmlFieldValue_t, scopeId);
SAME_PLACE(nvmlFieldValue_t, valueType);
SAME_PLACE(nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(nvmlFieldValue_t, value);
SAME_PLACE(nvmlProcessInfo_t, pid);
SAME_PLACE(nvmlProcessInfo_t, usedGpuMemory);
SAME_PLACE(nvmlProcessInfo_t, gpuInstanceId);
SAME_PLACE(nvmlProcessInfo_t, computeInstanceId);
SAME_PLACE(nvmlProcessUtilizationSample_t, pid);
SAME_PLACE(nvmlProcessUtilizationSample_t, timeStamp);
SAME_PLACE(nvmlProcessUtilizationSample_t, smUtil);
SAME_PLACE(nvmlProcessUtilizationSample_t, memUtil);
SAME_PLACE(nvmlProcessUtilizationSample_t, decUtil);

SAME_VALUE(NVML_SUCCESS);
SAME_VALUE(NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NVML_ERROR_NOT_FOUND);
SAME_VALUE(NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NVML_CLOCK_SM);
SAME_VALUE(NVML_CLOCK_MEM);
SAME_VALUE(NVML_TEMPERATURE_GPU);
SAME_VALUE(NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(NVML_PCIE_UTIL_RX_BYTES);
SAME_VALUE(NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_VALUE(NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(NVML_VOLATILE_ECC);
SAME_VALUE(NVML_TOTAL_POWER_SAMPLES);
SAME_VALUE(NVML_GPU_UTILIZATION_SAMPLES);
SAME_VALUE(NVML_MEMORY_UTILIZATION_SAMPLES);
SAME_VALUE(NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL);
SAME_VALUE(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL);
SAME_VALUE(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL);
SAME_VALUE(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
