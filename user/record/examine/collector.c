// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The function that collects a generation has the USDT probe gc__start, where the interpreter was built with probes.
 * Else it is the function that uses the text which gc.set_debug(gc.DEBUG_STATS) prints. Code for either hardly ever
 * runs, so compilers may move it out of the function: the function then has a conditional jump to it.
 */
#include "record/examine/collector.h"

#include "elf/usdt.h"

#include <string.h>

#define STATISTICS "gc: collecting generation %d...\n"
/*
 * Bytes of code that one of the two passes over a file reads. CPython has 3 to 5 MB of code; a file may claim any
 * number.
 */
#define SCAN_MAX (128ULL << 20)

struct range {
	u64 start, size;
};

static void add_function(struct collector *c, u64 function)
{
	if (c->n < COLLECTOR_FUNCTIONS && !collector__has(c, function))
		c->functions[c->n++] = function;
}

bool collector__has(const struct collector *c, u64 function)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->functions[i] == function)
			return true;
	return false;
}

struct usdt_search {
	struct collector *out;
	struct elf *elf;
};

static int on_usdt(const struct usdt *probe, void *arg)
{
	struct usdt_search *s = arg;
	u64 text, length, offset, start, size;

	if (strcmp(probe->name, "gc__start") != 0)
		return 0;
	for (u32 i = 0; elf__text(s->elf, i, &text, &length); i++)
		if (!elf__offset(s->elf, text, &offset) && probe->offset - offset < length &&
		    !elf__function_at(s->elf, text + (probe->offset - offset), &start, &size))
			add_function(s->out, start);
	return 0;
}

static u32 number_at(const u8 *code)
{
	u32 n;

	memcpy(&n, code, sizeof(n));
	return n;
}

/*
 * Do the four bytes at code[i], of an instruction that ends with them, refer to the address? `lea disp32(%rip), reg`,
 * and `mov imm32, reg` of a program with fixed addresses.
 */
static bool refers_to(const u8 *code, u64 i, u64 base, u64 address)
{
	u32 n = number_at(code + i);

	if (i >= 3 && (code[i - 3] & 0xfb) == 0x48 && code[i - 2] == 0x8d && (code[i - 1] & 0xc7) == 0x05)
		return base + i + sizeof(n) + (u64)(s64)(s32)n == address;
	return i >= 1 && (code[i - 1] & 0xf8) == 0xb8 && n == address;
}

/* The functions that are searched for jumps into them */
struct ranges {
	struct range list[COLLECTOR_FUNCTIONS];
	u32 n;
};

/* Does the conditional jump, whose distance is at code[i], lead into one of the functions from outside of it? */
static bool leads_into(const u8 *code, u64 i, u64 base, const struct ranges *functions)
{
	u64 from = base + i - 2, to = base + i + sizeof(u32) + (u64)(s64)(s32)number_at(code + i);

	if (i < 2 || code[i - 2] != 0x0f || (code[i - 1] & 0xf0) != 0x80)
		return false;
	for (u32 k = 0; k < functions->n; k++) {
		const struct range *f = &functions->list[k];

		if (to - f->start < f->size && from - f->start >= f->size)
			return true;
	}
	return false;
}

/*
 * Adds the functions with code that refers to the text or, if `into` is not NULL, with a jump into one of these
 * functions.
 */
static void scan_code(struct collector *c, struct elf *elf, u64 text, const struct ranges *into)
{
	u64 base, size, start, length, left = SCAN_MAX;
	const u8 *code;

	for (u32 s = 0; elf__text(elf, s, &base, &size); s++) {
		if (size > left)
			continue;
		left -= size;
		code = elf__bytes(elf, base, &size);
		for (u64 i = 0; code && i + sizeof(u32) <= size; i++) {
			if (into ? !leads_into(code, i, base, into) : !refers_to(code, i, base, text))
				continue;
			if (!elf__function_at(elf, base + i, &start, &length))
				add_function(c, start);
		}
	}
}

/* Adds the functions that jump into those found so far: these may be parts of them. */
static void add_whole(struct collector *c, struct elf *elf)
{
	struct ranges found = {};

	for (u32 i = 0; i < c->n; i++) {
		struct range *f = &found.list[found.n];

		found.n += !elf__function_at(elf, c->functions[i], &f->start, &f->size);
	}
	if (found.n)
		scan_code(c, elf, 0, &found);
}

void collector__find(struct collector *c, struct elf *elf)
{
	struct usdt_search s = { .out = c, .elf = elf };
	u64 text;

	memset(c, 0, sizeof(*c));
	usdt__each(elf, "python", on_usdt, &s);
	if (!c->n && !elf__find_text(elf, ".rodata", STATISTICS, &text))
		scan_code(c, elf, text, NULL);
	add_whole(c, elf);
}
