/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A target of the fuzzer: a file here that defines LLVMFuzzerTestOneInput. `make fuzz` builds it with libFuzzer,
 * which has a main of its own and gives it inputs of its own making; `make checks` with the main below, which runs
 * the files that it is given, so that each finding that was kept in seeds/NAME/ is a test from then on.
 */
#ifndef SONDE_FUZZ_H
#define SONDE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* So that the compiler can't leave out what computed it. */
static inline void fuzz__use(uint64_t value)
{
	static volatile uint64_t used;

	used += value;
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

#endif
