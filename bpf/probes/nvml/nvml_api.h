/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What sonde uses of NVML, the C API of libnvidia-ml.so.1. Names, values and layouts are those of nvml.h in CUDA 11.8,
 * 12.9 and 13.5; tests/fakes/nvml/ compares them with these headers. An enum of that header is passed as an unsigned
 * int.
 */
#pragma once

#ifndef __nvml_nvml_h__ /* in tests nvml.h itself was included before */

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef unsigned int nvmlReturn_t;
typedef unsigned int nvmlClockType_t;
typedef unsigned int nvmlTemperatureSensors_t;
typedef unsigned int nvmlTemperatureThresholds_t;
typedef unsigned int nvmlPcieUtilCounter_t;
typedef unsigned int nvmlMemoryErrorType_t;
typedef unsigned int nvmlEccCounterType_t;
typedef unsigned int nvmlSamplingType_t;
typedef unsigned int nvmlValueType_t;

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_GPU_IS_LOST = 15,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1 };
enum { NVML_PCIE_UTIL_TX_BYTES = 0, NVML_PCIE_UTIL_RX_BYTES = 1 };
enum { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0 };
enum { NVML_TOTAL_POWER_SAMPLES = 0, NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_MEMORY_UTILIZATION_SAMPLES = 2 };
enum {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL 38
#define NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL   52
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL 59
#define NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX	      138
#define NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX	      139

typedef struct {
	unsigned int gpu, memory; /* % */
} nvmlUtilization_t;

typedef struct {
	unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef union {
	double dVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
} nvmlValue_t;

typedef struct {
	unsigned long long timeStamp; /* us since 1970 */
	nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory; /* bytes; NVML_VALUE_NOT_AVAILABLE */
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
	unsigned int pid;
	unsigned long long timeStamp; /* us since 1970 */
	unsigned int smUtil, memUtil, encUtil, decUtil; /* % */
} nvmlProcessUtilizationSample_t;

#endif

/* Bytes of the buffers for texts: NVML_DEVICE_NAME_V2_BUFFER_SIZE and others */
#define NVML_TEXT 96

/* X(member, function, parameters): each returns nvmlReturn_t. A driver may lack some of them. */
#define NVML_FUNCTIONS(X)                                                                                            \
	X(init, nvmlInit_v2, (void))                                                                                 \
	X(driver, nvmlSystemGetDriverVersion, (char *, unsigned int))                                                \
	X(count, nvmlDeviceGetCount_v2, (unsigned int *))                                                            \
	X(handle, nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *))                                     \
	X(name, nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned int))                                             \
	X(uuid, nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int))                                             \
	X(pci, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *))                                             \
	X(mig, nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned int *, unsigned int *))                                 \
	X(utilization, nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *))                           \
	X(memory, nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *))                                           \
	X(clock, nvmlDeviceGetClockInfo, (nvmlDevice_t, nvmlClockType_t, unsigned int *))                            \
	X(max_clock, nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, nvmlClockType_t, unsigned int *))                     \
	X(limits, nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long *))                   \
	X(power, nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned int *))                                            \
	X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned int *))                              \
	X(temperature, nvmlDeviceGetTemperature, (nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int *))           \
	X(threshold, nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t, nvmlTemperatureThresholds_t, unsigned int *)) \
	X(pcie, nvmlDeviceGetPcieThroughput, (nvmlDevice_t, nvmlPcieUtilCounter_t, unsigned int *))                  \
	X(replays, nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned int *))                                   \
	X(ecc, nvmlDeviceGetTotalEccErrors,                                                                          \
	  (nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t, unsigned long long *))                         \
	X(fields, nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *))                                 \
	X(samples, nvmlDeviceGetSamples,                                                                             \
	  (nvmlDevice_t, nvmlSamplingType_t, unsigned long long, nvmlValueType_t *, unsigned int *, nvmlSample_t *)) \
	X(compute, nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))     \
	X(graphics, nvmlDeviceGetGraphicsRunningProcesses_v3, (nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))   \
	X(processes, nvmlDeviceGetProcessUtilization,                                                                \
	  (nvmlDevice_t, nvmlProcessUtilizationSample_t *, unsigned int *, unsigned long long))

#define NVML_MEMBER(member, function, parameters) nvmlReturn_t(*member) parameters;
struct nvml_functions {
	NVML_FUNCTIONS(NVML_MEMBER)
};
