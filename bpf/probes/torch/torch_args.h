/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the arguments of an operator are at its entry, from its mangled name (Itanium C++ ABI, System V x86-64 ABI). */
#ifndef SONDE_TORCH_ARGS_H
#define SONDE_TORCH_ARGS_H

#include "torch.h"

#define TORCH_ARGS_REGISTERS 6

struct torch_args {
	u8 kind[TORCH_ARGS_REGISTERS]; /* enum torch_arg */
	u8 number[TORCH_ARGS_REGISTERS]; /* of the argument, from 0 */
};

/*
 * parameters: the mangled types that follow the function's name at::_ops::NAME::call. has_result: the first register
 * holds the address of the result. Parameters after one of an unknown type are left out.
 */
void torch_args__find(const char *parameters, bool has_result, struct torch_args *out);
/* Is the address of the result passed? name: mangled; its template argument `I` begins with the type of the result. */
bool torch_args__has_result(const char *type);

#endif
