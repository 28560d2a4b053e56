// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as a batch of a shim: its head, of which the time, and then records with bodies and texts of some
 * kinds.
 */
#include <string.h>

#include "core/meta.h"
#include "core/shim_torch.h"
#include "fuzz.h"
#include "record/family.h"
#include "record/shim_batches.h"

#define FAMILY_ID 0x0d

static const struct shim_form forms[] = {
	[SHIM_KERNEL] = { FORM_SPAN(shim_kernel) },
	[SHIM_MEMCPY] = { FORM_EVENT(shim_device) },
	[SHIM_NAME] = { FORM_TEXT(shim_name) },
	[SHIM_STATE] = { FORM_TEXT(shim_state) },
};

static void check(void *arg, void *event, u32 size)
{
	const struct shim_raw *b = arg;
	const struct event *e = event;
	u64 sum = 0;

	for (u32 i = 0; i < size; i++)
		sum += ((const u8 *)event)[i];
	fuzz__use(sum);
	if (size < sizeof(*e) || size > RECORD_MAX || EVENT_FAMILY(e->id) != FAMILY_ID || e->pid != b->event.pid)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shim_raw *b;

	if (size < sizeof(*b) || size > sizeof(*b) + SHIM_BATCH_MAX)
		return 0;
	/* memory of just this size, so that a sanitizer notices a read behind it */
	b = malloc(size);
	if (!b)
		return 0;
	memcpy(b, data, size);
	fuzz__use(shim_batch__each(b, (u32)size, forms, sizeof(forms) / sizeof(*forms), FAMILY_ID, check, b));
	free(b);
	return 0;
}
