// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Functions of libtorture.so and what it counts itself, in memory that its children share.
#pragma once
#include <csetjmp>
#include <cstdint>

#define FUNCTIONS(f, F)                                                                                          \
	F(f, leaf) F(f, tail) F(f, recurse) F(f, jump) F(f, jumped) F(f, call) F(f, sigleaf) F(f, spin)         \
	F(f, forks) F(f, execs) F(f, exits) F(f, waits) F(f, ends) F(f, alloca_sum) F(f, aligned) F(f, branchy)

#define DECLARE(f, name) uint64_t f##_##name(uint64_t a, uint64_t b);

extern "C" {
FUNCTIONS(p, DECLARE)
FUNCTIONS(s, DECLARE)
}

struct truth {
	char name[24];
	uint64_t calls, sum_a, sum_b, returned, unwound;
};

extern truth *truths; // shared; ends with an empty name
truth *truth_of(const char *name);
extern jmp_buf back;
extern volatile uint64_t spin_until, cleaned;

namespace torture {
uint64_t outer(uint64_t a, uint64_t b); // catches
uint64_t middle(uint64_t a, uint64_t b); // has something to clean up
uint64_t bare(uint64_t a, uint64_t b); // has nothing
uint64_t rethrows(uint64_t a, uint64_t b);
uint64_t thrower(uint64_t a, uint64_t b); // throws when a is odd
}
