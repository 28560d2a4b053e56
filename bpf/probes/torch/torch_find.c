// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "torch_find.h"

#include "attach/library.h"
#include "torch.h"
#include "util/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY	      "libtorch_cpu.so"
#define ITS_FUNCTION  "_ZN2at15sequence_number17get_and_incrementEv"
#define OPERATORS_MAX 8000 /* libtorch 2.13 has 3,101 */
#define CODE_MAX      8192 /* bytes of a function that are searched */

/* at::_ops::NAME::call(..), and the local function at::_ops::create_NAME_typed_handle() */
#define CALL_PREFIX   "_ZN2at4_ops"
#define HANDLE_PREFIX "_ZN2at4_opsL"

#define BOXED_PREFIX "_ZNK3c1010Dispatcher9callBoxedE"
#define NODE_PREFIX  "_ZN5torch8autograd4NodeclE"
#define SLOW_PREFIX  "_ZN3c1010Dispatcher27callWithDispatchKeySlowPathI"
#define SLOW_MAX     4096

/* Tensor &, the type of a first argument that is changed */
#define CHANGED_TENSOR "RNS_6TensorE"
#define BOXED_MAX      256 /* clones; libtorch 2.13 has 13 */

bool torch_find__is_libtorch(struct elf *elf)
{
	return library__is(elf, LIBRARY, ITS_FUNCTION);
}

/* Reads the length and the text of a name in a mangled name. Returns what follows it; NULL: there is none. */
static const char *mangled_part(const char *p, const char **part, u32 *len)
{
	char *end;
	unsigned long n = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0;

	if (!n || n > strlen(end))
		return NULL;
	*part = end;
	*len = n;
	return end + n;
}

struct gathering {
	struct torch_functions *calls;
	struct torch_functions handles;
	bool failed;
};

static void add_call(struct gathering *g, const struct elf_symbol *sym)
{
	struct torch_function f = { .symbol = *sym };
	const char *rest = mangled_part(sym->name + strlen(CALL_PREFIX), &f.cpp, &f.cpp_len);

	if (!rest || strncmp(rest, "4callE", 6) || strchr(rest, '.') || g->calls->n == OPERATORS_MAX)
		return;
	f.parameters = rest + 6;
	g->failed |= !array__push(g->calls->operators, g->calls->n, f);
}

static void add_handle(struct gathering *g, const struct elf_symbol *sym)
{
	static const char before[] = "create_", after[] = "_typed_handle";
	const u32 around = sizeof(before) - 1 + sizeof(after) - 1;
	struct torch_function f = { .symbol = *sym };
	const char *rest = mangled_part(sym->name + strlen(HANDLE_PREFIX), &f.cpp, &f.cpp_len);

	if (!rest || strcmp(rest, "Ev") || f.cpp_len <= around || strncmp(f.cpp, before, sizeof(before) - 1) ||
	    strncmp(rest - (sizeof(after) - 1), after, sizeof(after) - 1) || g->handles.n == OPERATORS_MAX)
		return;
	f.cpp += sizeof(before) - 1;
	f.cpp_len -= around;
	g->failed |= !array__push(g->handles.operators, g->handles.n, f);
}

static void add_other(struct gathering *g, const struct elf_symbol *sym)
{
	struct torch_functions *f = g->calls;

	if (strstr(sym->name, ".cold"))
		return;
	if (!strncmp(sym->name, NODE_PREFIX, strlen(NODE_PREFIX)))
		f->node = *sym;
	else if (!strcmp(sym->name, ITS_FUNCTION))
		f->sequence = *sym;
	else if (!strncmp(sym->name, SLOW_PREFIX, strlen(SLOW_PREFIX)) && f->n_slow < SLOW_MAX)
		g->failed |= !array__push(f->slow, f->n_slow, *sym);
	else if (!strncmp(sym->name, BOXED_PREFIX, strlen(BOXED_PREFIX)) && f->n_boxed < BOXED_MAX)
		g->failed |= !array__push(f->boxed, f->n_boxed, *sym);
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	struct gathering *g = arg;

	if (!sym->function || !sym->offset)
		return g->failed;
	if (strncmp(sym->name, CALL_PREFIX, strlen(CALL_PREFIX)))
		add_other(g, sym);
	else if (sym->dynamic)
		add_call(g, sym);
	else if (sym->name[strlen(CALL_PREFIX)] == 'L')
		add_handle(g, sym);
	return g->failed;
}

static int by_name(const void *a, const void *b)
{
	const struct torch_function *x = a, *y = b;
	u32 len = x->cpp_len < y->cpp_len ? x->cpp_len : y->cpp_len;
	int order = memcmp(x->cpp, y->cpp, len);

	return order ? order : x->cpp_len < y->cpp_len ? -1 : x->cpp_len > y->cpp_len;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int torch_find__functions(struct elf *elf, struct torch_functions *out)
{
	struct gathering g = { .calls = out };

	*out = (struct torch_functions){};
	elf__each_symbol(elf, on_symbol, &g);
	if (!g.failed && g.handles.n)
		qsort(g.handles.operators, g.handles.n, sizeof(*g.handles.operators), by_name);
	for (u32 i = 0; !g.failed && i < out->n; i++) {
		const struct torch_function *h = g.handles.n ? bsearch(&out->operators[i], g.handles.operators,
								       g.handles.n, sizeof(*h), by_name) :
							       NULL;

		if (h)
			out->operators[i].schema = h->symbol.addr;
	}
	if (!g.failed && out->n_slow)
		qsort(out->slow, out->n_slow, sizeof(*out->slow), by_address);
	torch_functions__free(&g.handles);
	return g.failed ? -ENOMEM : 0;
}

/* The code of a function, and in *n its length. A file may say any size; the cost of a search is bounded by CODE_MAX. */
static const u8 *code_of(struct elf *elf, u64 *n, const struct torch_function *f)
{
	*n = f->symbol.size < CODE_MAX ? f->symbol.size : CODE_MAX;
	return elf__bytes(elf, f->symbol.addr, n);
}

/*
 * Most operators call their callWithDispatchKeySlowPath directly; in some it is inlined. Of the latter those that change
 * their first argument return it.
 */
const char *torch_find__result(struct elf *elf, const struct torch_functions *f, const struct torch_function *operator)
{
	u64 addr = operator->symbol.addr, n;
	const u8 *code = code_of(elf, &n, operator);

	for (u64 i = 0; code && f->n_slow && i + 5 <= n; i++) {
		struct elf_symbol target = {};
		const struct elf_symbol *found;
		s32 distance;

		if (code[i] != 0xe8)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		target.addr = addr + i + 5 + (u64)(s64)distance;
		found = bsearch(&target, f->slow, f->n_slow, sizeof(*f->slow), by_address);
		if (found)
			return found->name + strlen(SLOW_PREFIX);
	}
	return strncmp(operator->parameters, CHANGED_TENSOR, strlen(CHANGED_TENSOR)) ? NULL : CHANGED_TENSOR;
}

#define KEY_SETS 16 /* offsets 128, 136, .. that are considered */

/* Counts `mov offset(%reg),%reg` and `or offset(%reg),%reg` of 8 bytes. */
static void count_offsets(const u8 *code, u64 n, u32 *counts)
{
	for (u64 i = 0; i + 7 <= n; i++) {
		u32 offset;

		if ((code[i] & 0xf8) != 0x48 || (code[i + 1] != 0x8b && code[i + 1] != 0x0b))
			continue;
		/* an offset of four bytes from a register other than the stack and the frame pointer */
		if ((code[i + 2] & 0xc0) != 0x80 || (code[i + 2] & 7) == 4 || (code[i + 2] & 7) == 5)
			continue;
		memcpy(&offset, code + i + 3, sizeof(offset));
		if (offset >= TORCH_KEY_SET_FIRST && offset < TORCH_KEY_SET_FIRST + 8 * KEY_SETS && !(offset & 7))
			counts[(offset - TORCH_KEY_SET_FIRST) / 8]++;
	}
}

/* Operators begin with reading the key sets of their tensors. */
u32 torch_find__key_set(struct elf *elf, const struct torch_functions *f)
{
	u32 counts[KEY_SETS] = {}, best = 0;

	for (u32 i = 0; i < f->n && i < 64; i++) {
		u64 n;
		const u8 *code = code_of(elf, &n, &f->operators[i]);

		if (code)
			count_offsets(code, n, counts);
	}
	for (u32 i = 1; i < KEY_SETS; i++)
		if (counts[i] > counts[best])
			best = i;
	return counts[best] ? TORCH_KEY_SET_FIRST + 8 * best : 0;
}

bool torch_find__is_clone(const struct elf_symbol *boxed)
{
	return strstr(boxed->name, ".isra.");
}

bool torch_find__sequence_call(struct elf *elf, const struct elf_symbol *function, u64 *call, u32 *offset)
{
	/* lea index(%rip),%rdi; call __tls_get_addr; mov offset(%rax),%reg */
	static const u8 lea[] = { 0x48, 0x8d, 0x3d }, mov[] = { 0x48, 0x8b };
	const u32 after_lea = 7, after_call = 12, len = after_call + 7;
	u64 n = 64;
	const u8 *code = elf__bytes(elf, function->addr, &n);

	for (u64 i = 0; code && i + len <= n && i + len <= function->size; i++) {
		const u8 *at = code + i;

		if (memcmp(at, lea, sizeof(lea)) || at[after_lea] != 0xe8 || memcmp(at + after_call, mov, sizeof(mov)))
			continue;
		/* modrm: %rax and an offset of 4 bytes, or of one */
		memcpy(offset, at + after_call + 3, sizeof(*offset));
		if ((at[after_call + 2] & 0xc7) == 0x40)
			*offset = at[after_call + 3];
		else if ((at[after_call + 2] & 0xc7) != 0x80)
			return false;
		*call = function->addr + i + after_lea;
		return *offset < 0x8000;
	}
	return false;
}

void torch_functions__free(struct torch_functions *f)
{
	free(f->operators);
	free(f->boxed);
	free(f->slow);
	*f = (struct torch_functions){};
}

/* Reads a text in the file, whose characters are those of names. Returns false if it is none. */
static bool read_name(struct elf *elf, u64 addr, char *to, size_t len)
{
	u64 n = len;
	const u8 *text = elf__bytes(elf, addr, &n);
	size_t i;

	for (i = 0; text && i < n && text[i]; i++)
		if (!isalnum(text[i]) && !strchr("_:.", text[i]))
			return false;
	if (!text || i == n)
		return false;
	memcpy(to, text, i + 1);
	return true;
}

/*
 * The handle is created by findSchemaOrThrow(name, overload), whose arguments are loaded by `lea text(%rip),%rdx` and
 * `lea text(%rip),%rcx`, because the result and the dispatcher are passed first. Returns the address of the text.
 */
static u64 loaded_text(const u8 *code, u64 len, u64 addr, u8 modrm)
{
	for (u64 i = 0; i + 7 <= len; i++) {
		s32 distance;

		if (code[i] != 0x48 || code[i + 1] != 0x8d || code[i + 2] != modrm)
			continue;
		memcpy(&distance, code + i + 3, sizeof(distance));
		return addr + i + 7 + (u64)(s64)distance;
	}
	return 0;
}

static bool read_schema(struct elf *elf, u64 addr, char *name, char *overload, size_t len)
{
	u64 n = 128;
	const u8 *code = elf__bytes(elf, addr, &n);
	u64 first, second;

	if (!code)
		return false;
	first = loaded_text(code, n, addr, 0x15);
	second = loaded_text(code, n, addr, 0x0d);
	return first && second && read_name(elf, first, name, len) && read_name(elf, second, overload, len) &&
	       strstr(name, "::");
}

bool torch_find__name(struct elf *elf, const struct torch_function *f, char *name, size_t len)
{
	char first[TORCH_NAME_MAX / 2], second[TORCH_NAME_MAX / 2];

	if (!f->schema || !read_schema(elf, f->schema, first, second, sizeof(first))) {
		snprintf(name, len, "aten::%.*s", (int)f->cpp_len, f->cpp);
		return false;
	}
	snprintf(name, len, "%s%s%s", first, *second ? "." : "", second);
	return true;
}
