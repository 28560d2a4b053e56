// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A double of NVML, made with NVIDIA's header: FAKE_NVML in the environment states what it answers (script.h).
 * Samples of a history are 1 ms apart, and the last one is 1 ms old. As the real library it runs inside sonde's child,
 * so its entry `* probe` tries what that child must not be able to do, and returns the results as the driver's version.
 */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define DEVICES 64

static struct nvmlDevice_st {
	unsigned int index;
} devices[DEVICES];

static nvmlReturn_t number(nvmlDevice_t d, const char *key, unsigned int *out)
{
	unsigned long long value;
	nvmlReturn_t err = script__number(d->index, key, &value);

	if (err == NVML_SUCCESS)
		*out = (unsigned int)value;
	return err;
}

nvmlReturn_t nvmlInit_v2(void)
{
	unsigned long long value;
	nvmlReturn_t err = script__number(~0U, "init", &value);

	return err == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : err == NVML_SUCCESS ? (nvmlReturn_t)value : err;
}

static int error_of(int result)
{
	return result < 0 ? errno : 0;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	unsigned long long value;
	int passwd, create, program, sockets, device;

	snprintf(version, length, "580.00");
	if (script__number(~0U, "probe", &value) != NVML_SUCCESS)
		return NVML_SUCCESS;
	passwd = error_of(open("/etc/passwd", O_RDONLY));
	create = error_of(open("/tmp/sonde-nvml-probe", O_CREAT | O_WRONLY, 0600));
	program = error_of(execl("/bin/true", "true", NULL));
	sockets = error_of(socket(AF_UNIX, SOCK_STREAM, 0));
	/* a device that any user may write to */
	device = error_of(open("/dev/zero", O_RDWR));
	snprintf(version, length, "%d %d %d %d %d", passwd, create, program, sockets, device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = script__devices();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	devices[index].index = index;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *name, unsigned int length)
{
	(void)d;
	snprintf(name, length, "NVIDIA Double 80GB");
	return NVML_SUCCESS;
}

/* The UUIDs of the double of CUPTI (tests/fakes/cuda/), so that devices of both are the same */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *uuid, unsigned int length)
{
	unsigned int b = 0x11 + d->index;

	snprintf(uuid, length, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b,
		 b, b, b, b, b, b, b, b, b, b, b, b);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci)
{
	memset(pci, 0, sizeof(*pci));
	pci->bus = 0x10 + d->index;
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
	*pending = 0;
	return number(d, "mig", current);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *use)
{
	struct script_answer a;
	nvmlReturn_t err = script__next(d->index, "use", &a);

	use->gpu = (unsigned int)a.parts[0].values[0];
	use->memory = (unsigned int)a.parts[0].values[1];
	return err;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *memory)
{
	struct script_answer a;
	nvmlReturn_t err = script__next(d->index, "memory", &a);

	memory->used = a.parts[0].values[0];
	memory->total = a.parts[0].values[1];
	memory->free = memory->total - memory->used;
	return err;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *clock)
{
	return number(d, type == NVML_CLOCK_SM ? "sm_clock" : "memory_clock", clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *clock)
{
	return number(d, type == NVML_CLOCK_SM ? "sm_clock_max" : "memory_clock_max", clock);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *reasons)
{
	return script__number(d->index, "limits", reasons);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *power)
{
	return number(d, "power", power);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *limit)
{
	return number(d, "power_limit", limit);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *temperature)
{
	(void)sensor;
	return number(d, "temperature", temperature);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t type,
					       unsigned int *temperature)
{
	return type == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? number(d, "slowdown", temperature) :
							     NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
	return number(d, counter == NVML_PCIE_UTIL_TX_BYTES ? "pcie_sent" : "pcie_received", value);
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t d, unsigned int *value)
{
	return number(d, "pcie_replays", value);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
					 unsigned long long *errors)
{
	(void)counter;
	return script__number(d->index, type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? "ecc_corrected" : "ecc_uncorrected",
			      errors);
}

static const char *field_key(const nvmlFieldValue_t *f)
{
	switch (f->fieldId) {
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
		return "nvlink_sent";
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
		return "nvlink_received";
	case NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL:
		return "nvlink_crc_errors";
	case NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL:
		return "nvlink_replays";
	case NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL:
		return "nvlink_recoveries";
	default:
		return "";
	}
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *values)
{
	for (int i = 0; i < n; i++) {
		values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		values[i].nvmlReturn = script__number(d->index, field_key(&values[i]), &values[i].value.ullVal);
		if (values[i].nvmlReturn == NVML_ERROR_GPU_IS_LOST)
			return NVML_ERROR_GPU_IS_LOST;
	}
	return NVML_SUCCESS;
}

static unsigned long long now_us(void)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_usec;
}

/* us since 1970 of the i-th of n samples */
static unsigned long long sample_time(unsigned long long now, unsigned int i, unsigned int n)
{
	return now - 1000ull * (n - i);
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long seen,
				  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
	static const char *const keys[] = { "power_samples", "busy_samples", "memory_busy_samples" };
	struct script_answer a;
	nvmlReturn_t err = script__next(d->index, keys[type], &a);
	unsigned long long now = now_us();

	(void)seen;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	for (unsigned int i = 0; err == NVML_SUCCESS && i < a.n && i < *count; i++) {
		samples[i].timeStamp = sample_time(now, i, a.n);
		samples[i].sampleValue.uiVal = (unsigned int)a.parts[i].values[0];
	}
	if (err == NVML_SUCCESS)
		*count = a.n;
	return err;
}

static nvmlReturn_t processes(nvmlDevice_t d, const char *key, unsigned int *count, nvmlProcessInfo_t *infos)
{
	struct script_answer a;
	nvmlReturn_t err = script__next(d->index, key, &a);

	for (unsigned int i = 0; err == NVML_SUCCESS && i < a.n && i < *count; i++) {
		memset(&infos[i], 0, sizeof(infos[i]));
		infos[i].pid = (unsigned int)a.parts[i].values[0];
		infos[i].usedGpuMemory = a.parts[i].n > 1 ? a.parts[i].values[1] :
							    (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
	}
	if (err == NVML_SUCCESS)
		*count = a.n;
	return err;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_t *infos)
{
	return processes(d, "computing", count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_t *infos)
{
	return processes(d, "drawing", count, infos);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long seen)
{
	struct script_answer a;
	nvmlReturn_t err = script__next(d->index, "process_use", &a);
	unsigned long long now = now_us();

	(void)seen;
	for (unsigned int i = 0; err == NVML_SUCCESS && i < a.n && i < *count; i++) {
		memset(&samples[i], 0, sizeof(samples[i]));
		samples[i].pid = (unsigned int)a.parts[i].values[0];
		samples[i].smUtil = (unsigned int)a.parts[i].values[1];
		samples[i].memUtil = (unsigned int)a.parts[i].values[2];
		samples[i].timeStamp = sample_time(now, i, a.n);
	}
	if (err == NVML_SUCCESS)
		*count = a.n;
	return err;
}
