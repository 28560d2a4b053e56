// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "nvml_read.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/timing.h"

#define NVML_NAME(member, function, parameters) [NVML_INDEX_##member] = #function,
static const char *const function_names[] = { NVML_FUNCTIONS(NVML_NAME) };

const char *nvml_function__name(enum nvml_function f)
{
	return function_names[f];
}

const char *nvml_error__name(nvmlReturn_t error, char *buf, size_t len)
{
	static const char *const names[] = {
		[1] = "UNINITIALIZED",
		[2] = "INVALID_ARGUMENT",
		[3] = "NOT_SUPPORTED",
		[4] = "NO_PERMISSION",
		[6] = "NOT_FOUND",
		[7] = "INSUFFICIENT_SIZE",
		[9] = "DRIVER_NOT_LOADED",
		[10] = "TIMEOUT",
		[11] = "IRQ_ISSUE",
		[12] = "LIBRARY_NOT_FOUND",
		[13] = "FUNCTION_NOT_FOUND",
		[15] = "GPU_IS_LOST",
		[16] = "RESET_REQUIRED",
		[17] = "OPERATING_SYSTEM",
		[18] = "LIB_RM_VERSION_MISMATCH",
		[19] = "IN_USE",
		[20] = "MEMORY",
		[23] = "INSUFFICIENT_RESOURCES",
		[27] = "NOT_READY",
		[28] = "GPU_NOT_FOUND",
	};

	if (error < sizeof(names) / sizeof(names[0]) && names[error])
		snprintf(buf, len, "NVML_ERROR_%s", names[error]);
	else
		snprintf(buf, len, "error %u", (unsigned int)error);
	return buf;
}

u64 nvml_reader__time(const struct nvml_reader *r, u64 us)
{
	u64 ago = us < r->realtime ? (r->realtime - us) * 1000 : 0;

	return ago < r->now ? r->now - ago : r->now;
}

static void find_functions(struct nvml_reader *r, void *library)
{
	/* a pointer to a function has the size of one to data, as dlsym() requires */
	void **at = (void **)&r->f;

	for (u32 i = 0; i < NVML_FUNCTION_COUNT; i++)
		at[i] = dlsym(library, function_names[i]);
}
_Static_assert(sizeof(struct nvml_functions) == NVML_FUNCTION_COUNT * sizeof(void *), "one pointer a function");

static void read_clocks(struct nvml_reader *r)
{
	r->now = timing__now();
	r->realtime = timing__clock(CLOCK_REALTIME) / 1000;
}

/* "GPU-3b5e0a7c-9f65-4a1d-8b8e-0123456789ab" */
static void parse_uuid(struct nvml_device *d, const char *text)
{
	unsigned char bytes[16] = {};
	u32 n = 0;

	text = strchr(text, '-') ? strchr(text, '-') + 1 : "";
	for (; n < 2 * sizeof(bytes) && *text; text++) {
		char digit[2] = { *text };
		char *end;
		unsigned long value = strtoul(digit, &end, 16);

		if (end == digit)
			continue;
		bytes[n / 2] |= (unsigned char)(n % 2 ? value : value << 4);
		n++;
	}
	memcpy(&d->uuid_first, bytes, 8);
	memcpy(&d->uuid_last, bytes + 8, 8);
}

static void emit_device(struct nvml_reader *r, const struct nvml_gpu *g)
{
	struct nvml_device d = { .event = { .time = r->now, .id = ID_nvml_device }, .device = g->device };
	char text[NVML_TEXT] = "";
	unsigned int mig = 0, pending;
	nvmlPciInfo_t pci = { 0 };

	if (NVML_CALL(r, name, g->handle, text, sizeof(text)) == NVML_SUCCESS)
		snprintf(d.model, sizeof(d.model), "%.*s", (int)sizeof(d.model) - 1, text);
	if (NVML_CALL(r, uuid, g->handle, text, sizeof(text)) == NVML_SUCCESS) {
		text[sizeof(text) - 1] = '\0';
		parse_uuid(&d, text);
	}
	if (NVML_CALL(r, pci, g->handle, &pci) == NVML_SUCCESS) {
		d.pci_domain = pci.domain;
		d.pci_bus = pci.bus;
		d.pci_device = pci.device;
	}
	if (NVML_CALL(r, mig, g->handle, &mig, &pending) == NVML_SUCCESS)
		d.mig = mig;
	if (NVML_CALL(r, driver, text, sizeof(text)) == NVML_SUCCESS)
		snprintf(d.driver, sizeof(d.driver), "%.*s", (int)sizeof(d.driver) - 1, text);
	meter__emit(r->child, &d, sizeof(d));
}

/* Without a driver, or without a GPU, there is nothing to read, as on a machine without NVML. */
static int fail(struct nvml_reader *r, const char *function, nvmlReturn_t err)
{
	bool is_absent = err == NVML_ERROR_DRIVER_NOT_LOADED;
	char name[64];

	meter__report(r->child, is_absent ? METER_ABSENT : METER_FAILED, "NVML can't be read: %s returned %s", function,
		      nvml_error__name(err, name, sizeof(name)));
	return -EIO;
}

static int open_gpus(struct nvml_reader *r)
{
	unsigned int n = 0;
	nvmlReturn_t err = NVML_CALL(r, count, &n);

	if (err != NVML_SUCCESS)
		return fail(r, nvml_function__name(NVML_INDEX_count), err);
	for (u32 i = 0; i < n && r->n < NVML_DEVICES_MAX; i++) {
		struct nvml_gpu *g = &r->gpus[r->n];

		err = NVML_CALL(r, handle, i, &g->handle);
		if (err != NVML_SUCCESS)
			continue;
		g->device = i;
		for (u32 k = 0; k < sizeof(g->seen) / sizeof(g->seen[0]); k++)
			g->seen[k] = r->realtime;
		g->seen_processes = r->realtime;
		emit_device(r, g);
		r->n++;
	}
	if (r->n)
		return 0;
	if (n)
		return fail(r, nvml_function__name(NVML_INDEX_handle), err);
	meter__report(r->child, METER_ABSENT, "NVML lists no GPU");
	return -ENODEV;
}

int nvml__open(struct meter_child *c, void *library, void **state)
{
	struct nvml_reader *r = calloc(1, sizeof(*r));
	nvmlReturn_t err;

	if (!r)
		return -ENOMEM;
	*state = r;
	r->child = c;
	find_functions(r, library);
	if (!r->f.init)
		return fail(r, nvml_function__name(NVML_INDEX_init), NVML_ERROR_FUNCTION_NOT_FOUND);
	meter__begin_query(c, nvml_function__name(NVML_INDEX_init), true);
	err = r->f.init();
	meter__end_query(c);
	if (err != NVML_SUCCESS)
		return fail(r, nvml_function__name(NVML_INDEX_init), err);
	read_clocks(r);
	return open_gpus(r);
}

static void lose(struct nvml_reader *r, struct nvml_gpu *g)
{
	char name[64];

	g->is_lost = true;
	r->n_lost++;
	meter__report(r->child, METER_FAILED,
		      "GPU %u is lost (%s): the kernel's log says why. There are no more values of it", g->device,
		      nvml_error__name(NVML_ERROR_GPU_IS_LOST, name, sizeof(name)));
}

int nvml__read(struct meter_child *c, void *state)
{
	struct nvml_reader *r = state;

	if (r->n_lost)
		meter__missed(c, r->n_lost);
	for (u32 i = 0; i < r->n; i++) {
		struct nvml_gpu *g = &r->gpus[i];

		if (g->is_lost)
			continue;
		read_clocks(r);
		if (nvml_values__read(r, g) == NVML_ERROR_GPU_IS_LOST ||
		    nvml_history__read(r, g) == NVML_ERROR_GPU_IS_LOST ||
		    nvml_users__read(r, g) == NVML_ERROR_GPU_IS_LOST)
			lose(r, g);
	}
	return 0;
}
