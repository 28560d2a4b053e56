/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the functions of libtorch_cpu that the torch family probes, by the names of its symbols. The file is
 * untrusted.
 */
#pragma once

#include "elf/elf.h"

#define TORCH_NAME_MAX 160 /* bytes of an operator's name with its NUL */

#define TORCH_COLLECTIVES 5 /* functions of c10d that wait for a collective or run one */

/* An operator: at::_ops::NAME::call. */
struct torch_function {
	const char *cpp; /* NAME in its mangled name, as add_Tensor; not terminated */
	u32 cpp_len;
	struct elf_symbol symbol;
	const char *parameters; /* their mangled types */
	u64 schema; /* address of create_NAME_typed_handle, which has the operator's name; 0: there is none */
};

struct torch_functions {
	struct torch_function *operators;
	u32 n;
	struct elf_symbol *boxed; /* clones of c10::Dispatcher::callBoxed */
	u32 n_boxed;
	struct elf_symbol *
		slow; /* c10::Dispatcher::callWithDispatchKeySlowPath<RESULT, ..>, by the address of it or of its GOT entry */
	u32 n_slow;
	struct elf_symbol node; /* torch::autograd::Node::operator(); its name is NULL if there is none */
	struct elf_symbol sequence; /* at::sequence_number::get_and_increment; the same */
	struct elf_symbol thread; /* at::RecordFunction::currentThreadId; the same */
	bool old_strings; /* its std::string is one pointer, as before C++11 */
};

bool torch_find__is_libtorch(struct elf *elf);
bool torch_find__is_libtorch_python(struct elf *elf);

/* The TORCH_COLLECTIVES functions among the exported symbols; name NULL: there is none. */
void torch_find__collectives(struct elf *elf, struct elf_symbol *found);
/* Returns the name of such a function: "c10d::Work::wait". */
const char *torch_find__collective(u32 i);
/* The mangled type of the operator's result; NULL: not known. */
const char *torch_find__result(struct elf *elf, const struct torch_functions *f, const struct torch_function *operator);
/* The offset of key_set_ in c10::TensorImpl, by the code of operators; 0: not known. */
u32 torch_find__key_set(struct elf *elf, const struct torch_functions *f);
/* Has the compiler removed the dispatcher from the arguments of this callBoxed? */
bool torch_find__is_clone(const struct elf_symbol *boxed);
/* The call of __tls_get_addr in a function that begins with reading a variable of its thread. */
struct torch_variable {
	u64 call, after; /* addresses of the call and of the instruction that follows it */
	u32 offset; /* of the variable from the call's result */
	u64 base; /* of the call's result in the library's block of such variables */
	bool is_prefixed; /* the call has prefixes, with which the kernel does not emulate it */
};

/* Returns false if the function does not begin in this way. */
bool torch_find__variable(struct elf *elf, const struct elf_symbol *function, struct torch_variable *out);
/* Which word of a torch::autograd::Node is its sequence_nr_, by the code of its operator(); 0: not known. */
u32 torch_find__node_sequence(struct elf *elf, const struct elf_symbol *operator);
/* Free it in any case. Returns 0 or -ENOMEM. */
int torch_find__functions(struct elf *elf, struct torch_functions *out);
void torch_functions__free(struct torch_functions *f);
/*
 * Writes the name of the operator as PyTorch prints it, with its overload: aten::add.Tensor. Returns false if the file
 * does not show it; then the name is that of its C++ class, aten::add_Tensor.
 */
bool torch_find__name(struct elf *elf, const struct torch_function *f, char *name, size_t len);
