/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What x86-64's instructions do. */
#pragma once

#include "site/decoder.h"

/* Fills out from the instruction that capstone decoded. */
void x86__classify(const cs_insn *cs, struct insn *out);
/*
 * May a probe be moved from before this instruction to after it? True if the instruction changes neither the argument
 * registers nor the stack pointer nor memory.
 */
bool x86__keeps_arguments(csh handle, const cs_insn *cs);
/* Finds the table of an indirect jump. back[0] is the jump, back[n - 1] the oldest instruction. */
bool x86__jump_table(const cs_insn *const *back, u32 n, struct jump_table *out);
