// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* * Any bytes as a line table of each version, and as texts. The first byte is the version, the second the offset.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "python/lines.h"
#include "python/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 sum = 0;
	u8 *copy;

	if (size < 2)
		return 0;
	/* a block of exactly this size, so that the sanitizer detects every access beyond it */
	copy = malloc(size - 2 ?: 1);
	memcpy(copy, data + 2, size - 2);
	for (u16 version = 0x0308; version <= 0x030f; version++)
		for (u32 at = 0, step = 2 + data[1]; at < 64 * step; at += step)
			sum += python__line(version, copy, size - 2, data[0], at);
	for (u32 width = 0; width <= 4; width++)
		free(python__utf8(copy, size - 2, width));
	free(copy);
	fuzz__use(sum);
	return 0;
}
