// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "torch_find.h"

#include "attach/library.h"
#include "torch.h"
#include "torch_args.h"
#include "util/array.h"
#include "util/compare.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY	      "libtorch_cpu.so"
#define ITS_PYTHON    "libtorch_python.so"
#define ITS_FUNCTION  "_ZN2at15sequence_number17get_and_incrementEv"
#define THREAD	      "_ZN2at14RecordFunction15currentThreadIdEv"
#define OPERATORS_MAX 8000 /* libtorch 2.13 has 3,101 */
#define CODE_MAX      8192 /* bytes of a function that are searched */

/* at::_ops::NAME::call(..), and the local function at::_ops::create_NAME_typed_handle() */
#define CALL_PREFIX   "_ZN2at4_ops"
#define HANDLE_PREFIX "_ZN2at4_opsL"

#define BOXED_PREFIX "_ZNK3c1010Dispatcher9callBoxedE"
#define BOXED	     BOXED_PREFIX "RKNS_14OperatorHandleEPSt6vectorINS_6IValueESaIS5_EE"
#define NODE_PREFIX  "_ZN5torch8autograd4NodeclE"
#define SLOW_PREFIX  "_ZN3c1010Dispatcher27callWithDispatchKeySlowPathI"
#define SLOW_MAX     4096
/* std::string::_Rep::_S_empty_rep_storage, which only users of libstdc++'s strings from before C++11 import */
#define OLD_STRING "_ZNSs4_Rep20_S_empty_rep_storageE"

/* Tensor &, the type of a first argument that is changed */
#define CHANGED_TENSOR "RNS_6TensorE"
#define BOXED_MAX      256 /* clones; libtorch 2.13 has 13 */

/* DistributedDataParallel waits in its reducer for what it has sent during the backward pass. */
static const struct {
	const char *prefix, *name;
} collectives[TORCH_COLLECTIVES] = {
	{ "_ZN4c10d4Work4waitE", "c10d::Work::wait" },
	{ "_ZN4c10d16ProcessGroupGloo8SendWork4waitE", "c10d::ProcessGroupGloo::SendWork::wait" },
	{ "_ZN4c10d16ProcessGroupGloo8RecvWork4waitE", "c10d::ProcessGroupGloo::RecvWork::wait" },
	{ "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeE", "c10d::ProcessGroupGloo::AsyncWork::execute" },
	{ "_ZN4c10d7Reducer17finalize_backwardE", "c10d::Reducer::finalize_backward" },
};

const char *torch_find__collective(u32 i)
{
	return collectives[i].name;
}

static int on_exported(const struct elf_symbol *sym, void *arg)
{
	struct elf_symbol *found = arg;

	/* the exported symbols come first */
	if (!sym->dynamic)
		return 1;
	for (u32 i = 0; sym->function && sym->offset && i < TORCH_COLLECTIVES; i++)
		if (!strncmp(sym->name, collectives[i].prefix, strlen(collectives[i].prefix)))
			found[i] = *sym;
	return 0;
}

void torch_find__collectives(struct elf *elf, struct elf_symbol *found)
{
	memset(found, 0, TORCH_COLLECTIVES * sizeof(*found));
	elf__each_symbol(elf, on_exported, found);
}

bool torch_find__is_libtorch(struct elf *elf)
{
	return library__is(elf, LIBRARY, ITS_FUNCTION);
}

/*
 * Before PyTorch 2.7 or so, callBoxed is a weak function, which both libraries define. In a Python process all calls
 * lead to that of libtorch_python, which the dynamic linker finds first.
 */
bool torch_find__is_libtorch_python(struct elf *elf)
{
	return library__is(elf, ITS_PYTHON, BOXED);
}

struct gathering {
	struct torch_functions *calls;
	struct torch_functions handles;
	bool failed;
};

static void add_call(struct gathering *g, const struct elf_symbol *sym)
{
	struct torch_function f = { .symbol = *sym };
	const char *rest = torch_args__name(sym->name + strlen(CALL_PREFIX), &f.cpp, &f.cpp_len);

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
	const char *rest = torch_args__name(sym->name + strlen(HANDLE_PREFIX), &f.cpp, &f.cpp_len);

	if (!rest || strcmp(rest, "Ev") || f.cpp_len <= around || strncmp(f.cpp, before, sizeof(before) - 1) ||
	    strncmp(rest - (sizeof(after) - 1), after, sizeof(after) - 1) || g->handles.n == OPERATORS_MAX)
		return;
	f.cpp += sizeof(before) - 1;
	f.cpp_len -= around;
	g->failed |= !array__push(g->handles.operators, g->handles.n, f);
}

/* A global function is in both tables of symbols. */
static void add_boxed(struct gathering *g, const struct elf_symbol *sym)
{
	struct torch_functions *f = g->calls;

	for (u32 i = 0; i < f->n_boxed; i++)
		if (f->boxed[i].addr == sym->addr)
			return;
	if (f->n_boxed < BOXED_MAX)
		g->failed |= !array__push(f->boxed, f->n_boxed, *sym);
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
	else if (!strcmp(sym->name, THREAD))
		f->thread = *sym;
	else if (!strncmp(sym->name, SLOW_PREFIX, strlen(SLOW_PREFIX)) && f->n_slow < SLOW_MAX)
		g->failed |= !array__push(f->slow, f->n_slow, *sym);
	else if (!strncmp(sym->name, BOXED_PREFIX, strlen(BOXED_PREFIX)))
		add_boxed(g, sym);
}

/* The slow paths that are called through the PLT. Their address is that of the slot. */
static bool on_slot(const char *name, u64 slot, void *arg)
{
	struct elf_symbol sym = { .name = name, .addr = slot };
	struct gathering *g = arg;

	g->calls->old_strings |= !strcmp(name, OLD_STRING);
	if (!strncmp(name, SLOW_PREFIX, strlen(SLOW_PREFIX)) && g->calls->n_slow < SLOW_MAX)
		g->failed |= !array__push(g->calls->slow, g->calls->n_slow, sym);
	return !g->failed;
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

COMPARE_BY(by_address, struct elf_symbol, ASCENDING(addr))

int torch_find__functions(struct elf *elf, struct torch_functions *out)
{
	struct gathering g = { .calls = out };

	*out = (struct torch_functions){};
	elf__each_symbol(elf, on_symbol, &g);
	if (!g.failed && (out->n || out->n_boxed))
		elf__each_slot(elf, on_slot, &g);
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

/*
 * The code of a function, and in *n its length. A file may say any size; the cost of a search is bounded by CODE_MAX.
 */
static const u8 *code_of(struct elf *elf, u64 *n, const struct torch_function *f)
{
	*n = f->symbol.size < CODE_MAX ? f->symbol.size : CODE_MAX;
	return elf__bytes(elf, f->symbol.addr, n);
}

/*
 * The address in the slot's place: that of the function, or of the slot through which the stub of a PLT at addr jumps.
 */
static u64 stub_slot(struct elf *elf, u64 addr)
{
	static const u8 jmp[] = { 0xff, 0x25 };
	u64 n = sizeof(jmp) + sizeof(s32);
	const u8 *code = elf__bytes(elf, addr, &n);
	s32 distance;

	if (!code || n < sizeof(jmp) + sizeof(s32) || memcmp(code, jmp, sizeof(jmp)))
		return addr;
	memcpy(&distance, code + sizeof(jmp), sizeof(distance));
	return addr + n + (u64)(s64)distance;
}

/*
 * Most operators call their callWithDispatchKeySlowPath, directly or through the PLT; in some it is inlined. Of the
 * latter those that change their first argument return it.
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
		if (!found) {
			target.addr = stub_slot(elf, target.addr);
			found = bsearch(&target, f->slow, f->n_slow, sizeof(*f->slow), by_address);
		}
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

/* The instruction `mov offset(%rax),%reg` of 8 bytes at this code. Returns false if it is another one. */
static bool load_from_result(const u8 *code, u32 *offset)
{
	if ((code[0] & 0xfb) != 0x48 || code[1] != 0x8b)
		return false;
	*offset = 0;
	switch (code[2] & 0xc7) {
	case 0x00:
		return true;
	case 0x40:
		*offset = code[3];
		return *offset < 0x80;
	case 0x80:
		memcpy(offset, code + 3, sizeof(*offset));
		return *offset < 0x8000;
	}
	return false;
}

/* The offset in struct tls_index {module, offset}, whose address is loaded by `lea distance(%rip),%rdi` at addr. */
static u64 tls_offset(struct elf *elf, u64 addr, const u8 *lea, u32 lea_len)
{
	u64 n = sizeof(u64), offset = 0;
	s32 distance;
	const u8 *word;

	memcpy(&distance, lea + 3, sizeof(distance));
	word = elf__bytes(elf, addr + lea_len + (u64)(s64)distance + sizeof(u64), &n);
	if (word && n >= sizeof(offset))
		memcpy(&offset, word, sizeof(offset));
	return offset;
}

bool torch_find__variable(struct elf *elf, const struct elf_symbol *function, struct torch_variable *out)
{
	/*
	 * lea index(%rip),%rdi; call __tls_get_addr, with or without the prefixes by which the linker could replace
	 * them
	 */
	static const u8 lea[] = { 0x48, 0x8d, 0x3d }, prefixes[] = { 0x66, 0x66, 0x48 };
	const u32 lea_len = 7, call_len = 5, load_len = 7;
	u64 n = 64;
	const u8 *code = elf__bytes(elf, function->addr, &n);

	if (n > function->size)
		n = function->size;
	for (u64 i = 0; code && i + lea_len + sizeof(prefixes) + call_len + load_len <= n; i++) {
		u64 call = i + lea_len;

		if (memcmp(code + i, lea, sizeof(lea)) != 0)
			continue;
		out->is_prefixed = !memcmp(code + call, prefixes, sizeof(prefixes));
		call += out->is_prefixed ? sizeof(prefixes) : 0;
		if (code[call] != 0xe8)
			continue;
		out->call = function->addr + call;
		out->after = out->call + call_len;
		/* without prefixes the call is for the library's block, and not for one variable */
		out->base = out->is_prefixed ? tls_offset(elf, function->addr + i, code + i, lea_len) : 0;
		return load_from_result(code + call + call_len, &out->offset);
	}
	return false;
}

/* The register to which `mov %rsi,%reg` at this code copies the second argument; -1: another instruction. */
static int copy_of_second(const u8 *code)
{
	if ((code[0] & 0xfe) != 0x48 || code[1] != 0x89 || (code[2] & 0xf8) != 0xf0)
		return -1;
	return (code[2] & 7) | (code[0] & 1) << 3;
}

/* The words of the object in register reg that `mov offset(%reg),%other` of 8 bytes loads, as a set of bits. */
static u32 loaded_words(const u8 *code, u64 n, int reg)
{
	u32 words = 0;

	for (u64 i = 0; i + 4 <= n; i++)
		if ((code[i] & 0xfa) == 0x48 && (code[i] & 1) == reg >> 3 && code[i + 1] == 0x8b &&
		    (code[i + 2] & 0xc7) == (0x40 | (reg & 7)) && !(code[i + 3] & 0x87))
			words |= 1u << code[i + 3] / 8;
	return words;
}

/*
 * `mov %reg,offset(%rbp)` or `mov offset(%rbp),%reg` of 8 bytes, by opcode 0x89 or 0x8b: sets *offset and returns the
 * register; -1: another instruction.
 */
static int frame_access(const u8 *code, u8 opcode, s32 *offset)
{
	int reg = ((code[2] >> 3) & 7) | (code[0] & 4) << 1;

	if ((code[0] & 0xfb) != 0x48 || code[1] != opcode)
		return -1;
	if ((code[2] & 0xc7) == 0x45)
		*offset = (s8)code[3];
	else if ((code[2] & 0xc7) == 0x85)
		memcpy(offset, code + 3, sizeof(*offset));
	else
		return -1;
	return reg;
}

#define FRAME_ACCESS_LEN 7
#define RELOADED_LEN	 32 /* bytes of code after a reload in which the register still has the argument */

/* As loaded_words(), of an object whose address is in the stack frame at this offset. */
static u32 words_of_spilled(const u8 *code, u64 n, s32 spilled)
{
	u32 words = 0;
	s32 offset;

	for (u64 i = 0; i + FRAME_ACCESS_LEN <= n; i++) {
		int reg = frame_access(code + i, 0x8b, &offset);
		u64 rest = n - i;

		if (reg >= 0 && (reg & 7) != 4 && offset == spilled)
			words |= loaded_words(code + i, rest < RELOADED_LEN ? rest : RELOADED_LEN, reg);
	}
	return words;
}

u32 torch_find__node_sequence(struct elf *elf, const struct elf_symbol *operator)
{
	u64 n = operator->size<CODE_MAX ? operator->size : CODE_MAX;
	const u8 *code = elf__bytes(elf, operator->addr, &n);
	u32 words = 0;
	s32 spilled;

	for (u64 i = 0; code && i + FRAME_ACCESS_LEN <= n && i < 64; i++) {
		int reg = copy_of_second(code + i);

		/* %rsp and %r12 need another form of address */
		if (reg >= 0 && (reg & 7) != 4)
			words |= loaded_words(code, n, reg);
		/* the second argument is %rsi, register 6; 2.11 copies it only to the stack */
		if (frame_access(code + i, 0x89, &spilled) == 6)
			words |= words_of_spilled(code, n, spilled);
	}
	for (u32 word = 2; word < 4; word++)
		if (words & 1u << word && words & 1u << (word + TORCH_NODE_THREAD))
			return word;
	return 0;
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
