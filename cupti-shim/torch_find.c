// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds PyTorch's functions, and the members of at::RecordFunction that its header reads inline. Source: PyTorch's
 * ATen/record_function.h, which has been the same from 2.1 to 2.13. The code of RecordFunction::name() shows where its
 * member fn_ lies and how large it is; the others lie at fixed distances from it:
 *
 *	fn_ - 72	u64 the thread's number in PyTorch
 *	fn_ - 64	u8 scope
 *	fn_		std::variant<std::string, reference to a FunctionSchema>, then
 *	which		u8: 1: it is an operator's schema
 *	which + 8	i64 sequence number
 *	which + 112	u64 the number of the thread that made the backward node
 */
#define _GNU_SOURCE
#include "libc.h"
#include "torch.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "/libtorch_cpu.so"

struct torch_library torch_library;

/* at::RecordFunctionCallback, which is passed on the stack; zeros behind it are what a later version may add. */
struct callback {
	void **(*begin)(void **context, const struct record_function *f);
	void (*end)(const struct record_function *f, void *context);
	double probability;
	bool scopes[10];
	bool needs[3]; /* inputs, outputs, ids */
	uint8_t later[19];
};

static uint64_t (*add_callback)(struct callback c);

uint64_t torch_find__add(bool ranges)
{
	struct callback c = { .begin = torch_calls__begin, .end = torch_calls__end, .probability = 1 };

	c.scopes[TORCH_SCOPE_USER] = ranges;
	c.scopes[TORCH_SCOPE_FUNCTION] = c.scopes[TORCH_SCOPE_BACKWARD] = c.scopes[TORCH_SCOPE_SCRIPT] = !ranges;
	return add_callback(c);
}

static int find_path(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *name = strrchr(info->dlpi_name, '/');

	if (!name || strcmp(name, LIBRARY) != 0)
		return 0;
	snprintf(path, PATH_MAX, "%s", info->dlpi_name);
	return 1;
}

/* The displacement of the instruction `at` bytes from `code` on; 0: it does not begin with these three bytes. */
static uint32_t displacement(const uint8_t *code, size_t at, const char *begins)
{
	uint32_t n = 0;

	if (!memcmp(code + at, begins, 3))
		memcpy(&n, code + at + 3, sizeof(n));
	return n;
}

static bool find_members(struct torch_library *l)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)l->name;
	uint32_t which = 0, fn;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		code += 4;
	/* from 2.7 on: cmpb $0, which(%rdi); mov fn_(%rdi), %rax */
	fn = displacement(code, 7, "\x48\x8b\x87");
	if (fn && !memcmp(code, "\x80\xbf", 2) && !code[6])
		memcpy(&which, code + 2, sizeof(which));
	/* before: sub $24, %rsp; movzbl which(%rdi), %eax; mov $-1, %rdx; lea fn_(%rdi), %rsi */
	if (!which) {
		which = displacement(code, 4, "\x0f\xb6\x87");
		fn = displacement(code, 18, "\x48\x8d\xb7");
	}
	/* a std::string has 32 bytes, or 8 where it is that from before C++11 */
	if (fn < 72 || fn > 512 || (which != fn + 32 && which != fn + 8))
		return false;
	l->thread = fn - 72;
	l->scope = fn - 64;
	l->is_operator = which;
	l->sequence = which + 8;
	l->forward_thread = which + 112;
	return true;
}

bool torch_find__is_loaded(void)
{
	char path[PATH_MAX];

	return dl_iterate_phdr(find_path, path);
}

int torch_find__library(const char **why)
{
	struct torch_library l = { 0 };
	char path[PATH_MAX] = "";
	void *library;

	if (torch_library.name)
		return 0;
	if (!dl_iterate_phdr(find_path, path))
		return -EAGAIN;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!library)
		return -EAGAIN;
	*(void **)&add_callback = dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&l.remove = dlsym(library, "_ZN2at14removeCallbackEm");
	*(void **)&l.name = dlsym(library, "_ZNK2at14RecordFunction4nameEv");
	*(void **)&l.next_sequence = dlsym(library, "_ZN2at15sequence_number4peekEv");
	/* the library stays: PyTorch's own code is in it, and dlclose() may free it */
	*why = "this PyTorch lacks at::addGlobalCallback, or another function that is needed";
	if (!add_callback || !l.remove || !l.name || !l.next_sequence)
		return -ENOTSUP;
	*why = "the layout of this PyTorch's at::RecordFunction is not known";
	if (!find_members(&l))
		return -ENOTSUP;
	torch_library = l;
	return 0;
}
