/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What NVML, the library of NVIDIA's driver behind nvidia-smi, reports about GPUs from outside of all processes
 * (docs/gpu-metrics.md). Values that a GPU does not have are left out: none is 0 for that reason.
 */
#pragma once

#include "core/event.h"

FAMILY(nvml, 0x16, FAMILY_USUAL, "GPUs as NVML reports them: use, clocks and their limits, power, links, processes");

struct nvml_device {
	struct event event;
	u64 uuid_first UNIT(hex) DOC("the UUID's first 8 bytes, as in gpu_device");
	u64 uuid_last UNIT(hex) DOC("its last 8 bytes");
	u32 device DOC("NVML's index: the number that nvidia-smi shows");
	u32 pci_domain, pci_bus, pci_device;
	u32 mig DOC("1: the GPU is divided (Multi-Instance GPU)");
	u32 pad;
	char model[64];
	char driver[32] DOC("version of NVIDIA's driver");
} EVENT(nvml_device, 0x1601, "a GPU of this machine");

enum nvml_metric {
	NVML_METRIC_BUSY = 1, /* % of the time since the last sample in which any kernel ran */
	NVML_METRIC_MEMORY_BUSY = 2, /* % of the same time in which the device's memory was read or written */
	NVML_METRIC_MEMORY_USED = 3, /* bytes, with what the driver reserves */
	NVML_METRIC_MEMORY_TOTAL = 4, /* bytes */
	NVML_METRIC_SM_CLOCK = 5, /* MHz */
	NVML_METRIC_SM_CLOCK_MAX = 6, /* MHz */
	NVML_METRIC_MEMORY_CLOCK = 7, /* MHz */
	NVML_METRIC_MEMORY_CLOCK_MAX = 8, /* MHz */
	NVML_METRIC_CLOCK_LIMITS = 9, /* bits: enum nvml_limit */
	NVML_METRIC_POWER = 10, /* mW */
	NVML_METRIC_POWER_LIMIT = 11, /* mW, the one in force */
	NVML_METRIC_TEMPERATURE = 12, /* degrees Celsius */
	NVML_METRIC_TEMPERATURE_SLOWDOWN = 13, /* degrees Celsius from which the hardware lowers the clocks */
	NVML_METRIC_PCIE_SENT = 14, /* KB/s, over 20 ms */
	NVML_METRIC_PCIE_RECEIVED = 15, /* KB/s, over 20 ms */
	NVML_METRIC_PCIE_REPLAYS = 16, /* counter */
	NVML_METRIC_NVLINK_SENT = 17, /* KiB, counter of all links */
	NVML_METRIC_NVLINK_RECEIVED = 18, /* KiB, counter of all links */
	NVML_METRIC_NVLINK_CRC_ERRORS = 19, /* counter of all links */
	NVML_METRIC_NVLINK_REPLAYS = 20, /* counter of all links */
	NVML_METRIC_NVLINK_RECOVERIES = 21, /* counter of all links */
	NVML_METRIC_ECC_CORRECTED = 22, /* counter since the driver was loaded */
	NVML_METRIC_ECC_UNCORRECTED = 23, /* counter since the driver was loaded */
	/* of a process */
	NVML_METRIC_PROCESS = 24, /* it has a context: 1 to compute, 2 for graphics, 3 both */
	NVML_METRIC_PROCESS_MEMORY = 25, /* bytes */
	NVML_METRIC_PROCESS_BUSY = 26, /* % of the time in which its kernels ran */
	NVML_METRIC_PROCESS_MEMORY_BUSY = 27, /* % of the time in which they used the device's memory */
	NVML_METRICS,
};

/* What limits a GPU's clocks, as bits: nvmlClocksEventReasons of nvml.h. */
enum nvml_limit {
	NVML_LIMIT_IDLE = 0x1,
	NVML_LIMIT_SETTING = 0x2, /* the clocks that a user has set */
	NVML_LIMIT_POWER = 0x4, /* the power limit */
	NVML_LIMIT_HARDWARE = 0x8, /* the hardware, for one of the two below or a fast change of power */
	NVML_LIMIT_SYNC = 0x10, /* another GPU of its group */
	NVML_LIMIT_TEMPERATURE = 0x20,
	NVML_LIMIT_HARDWARE_TEMPERATURE = 0x40,
	NVML_LIMIT_POWER_BRAKE = 0x80, /* the machine's power supply requested it */
	NVML_LIMIT_DISPLAY = 0x100,
	NVML_LIMIT_BOARD = 0x200,
	NVML_LIMIT_RELIABILITY = 0x400,
};

struct nvml_value {
	struct event event;
	u64 value;
	enum nvml_metric metric;
	u32 device DOC("as in nvml_device");
	u32 process UNIT(task) DOC("the process that a metric of a process is about, else 0");
	u32 pad;
} EVENT(nvml_value, 0x1602, "the value of a metric at a time; a percentage is about the time before it");

/* For the names of processes that no family records */
struct nvml_process {
	struct event event;
	u32 process UNIT(task);
	u32 pad;
	char text[];
} EVENT(nvml_process, 0x1603, "the program of a process that uses a GPU");
