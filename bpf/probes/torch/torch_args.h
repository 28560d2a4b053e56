/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds which registers hold an operator's arguments, from its mangled name (Itanium C++ ABI, System V x86-64 ABI). */
#pragma once

#include "torch.h"

#define TORCH_ARGS_REGISTERS 6

struct torch_args {
	u8 kind[TORCH_ARGS_REGISTERS]; /* enum torch_arg of each register, in the ABI's order */
	u8 number[TORCH_ARGS_REGISTERS]; /* index of the register's argument, from 0; 15: that or a higher one */
	/*
	 * where on the stack the first argument of type bool that is passed there lies, in words of 8 bytes from the
	 * return address; 0: there is none, or not known
	 */
	u8 stack_bool;
};

/*
 * Gets a part of a mangled name, which its length precedes (6Tensor). Returns what follows it; NULL: there is no such
 * part.
 */
const char *torch_args__name(const char *mangled, const char **name, u32 *len);
/*
 * parameters: the mangled types that follow the function's name at::_ops::NAME::call. has_result: the first register
 * holds the address of the result. Where a parameter's type is unknown, so are the registers of those after it: they
 * are left out.
 */
void torch_args__find(const char *parameters, bool has_result, struct torch_args *out);
/* Returns whether the first register holds the address of the result. type: begins with the result's mangled type. */
bool torch_args__has_result(const char *type);
/*
 * Returns the number of tensors in the result, whose address the first register holds: 1 for a tensor, 2 or 3 for a
 * tuple; 0: the result is none of these.
 */
u32 torch_args__results(const char *type);
