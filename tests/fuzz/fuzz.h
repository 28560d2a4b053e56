/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fuzz target is a file in this folder that defines LLVMFuzzerTestOneInput. `make fuzz` builds it with libFuzzer,
 * which has its own main and generates inputs. `make checks` builds it with the main below, which runs the files in its
 * arguments, so that each input in seeds/NAME/ becomes a test.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keeps the compiler from removing the computation of a value. */
static inline void fuzz__use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value));
}

#ifndef FUZZ
int main(int argc, char **argv)
{
	uint8_t *room = malloc(INPUT_MAX);

	for (int i = 1; i < argc && room; i++) {
		FILE *f = fopen(argv[i], "rbe");
		size_t size;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		size = fread(room, 1, INPUT_MAX, f);
		fclose(f);
		LLVMFuzzerTestOneInput(room, size);
	}
	free(room);
	return argc < 2;
}
#endif
