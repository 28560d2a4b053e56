// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a line table of each version, and as texts. The first byte is the version, the second the offset.
 *
 *	clang -DFUZZ -fsanitize=fuzzer,address,undefined ... python_lines.c user/python/lines.c user/python/text.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/lines.h"
#include "python/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 sum = 0;
	u8 *copy;

	if (size < 2)
		return 0;
	/* a block of just this size, so that the sanitizer sees every byte beyond */
	copy = malloc(size - 2 ?: 1);
	memcpy(copy, data + 2, size - 2);
	for (u16 version = 0x0308; version <= 0x030f; version++)
		for (u32 at = 0; at < 4096; at += 2 + data[1])
			sum += python__line(version, copy, size - 2, data[0], at);
	for (u32 width = 0; width <= 4; width++)
		free(python__utf8(copy, size - 2, width));
	free(copy);
	/* so that nothing above is optimized away */
	if (sum == 42)
		printf("\n");
	return 0;
}

#ifndef FUZZ
int main(int argc, char **argv)
{
	static uint8_t data[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rbe");

		if (!f)
			return 1;
		LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), f));
		fclose(f);
	}
	return 0;
}
#endif
