// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf/usdt.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elf_private.h"

#define NOTE_TYPE 3 /* NT_STAPSDT */

/* The names of each register by width: 8, 4, 2 and 1 bytes. */
static const char *const registers[16][4] = {
	{ "rax", "eax", "ax", "al" },	   { "rcx", "ecx", "cx", "cl" },      { "rdx", "edx", "dx", "dl" },
	{ "rbx", "ebx", "bx", "bl" },	   { "rsp", "esp", "sp", "spl" },     { "rbp", "ebp", "bp", "bpl" },
	{ "rsi", "esi", "si", "sil" },	   { "rdi", "edi", "di", "dil" },     { "r8", "r8d", "r8w", "r8b" },
	{ "r9", "r9d", "r9w", "r9b" },	   { "r10", "r10d", "r10w", "r10b" }, { "r11", "r11d", "r11w", "r11b" },
	{ "r12", "r12d", "r12w", "r12b" }, { "r13", "r13d", "r13w", "r13b" }, { "r14", "r14d", "r14w", "r14b" },
	{ "r15", "r15d", "r15w", "r15b" },
};

/* Parses "%rax"; *end gets the position behind it. Returns -1 if it is not a register. */
static int parse_register(const char *text, const char **end)
{
	size_t n;

	if (*text++ != '%')
		return -1;
	n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
	*end = text + n;
	for (int i = 0; i < 16; i++)
		for (int width = 0; width < 4; width++)
			if (strlen(registers[i][width]) == n && !memcmp(registers[i][width], text, n))
				return i;
	return -1;
}

void usdt__parse_arg(const char *text, struct usdt_arg *out)
{
	char *number;
	const char *end;
	long size = strtol(text, &number, 10), displacement;
	int reg;

	*out = (struct usdt_arg){};
	if (*number != '@' || (labs(size) != 1 && labs(size) != 2 && labs(size) != 4 && labs(size) != 8))
		return;
	text = number + 1;
	displacement = strtol(text, &number, 10);
	if (*number == '(') {
		reg = parse_register(number + 1, &end);
		if (reg < 0 || *end != ')' || displacement < -32768 || displacement > 32767)
			return;
		end++;
		out->memory = true;
		out->displacement = (s16)displacement;
	} else {
		reg = number == text ? parse_register(text, &end) : -1;
		if (reg < 0)
			return;
	}
	if (*end && *end != ' ')
		return;
	out->reg = (u8)reg;
	out->is_signed = size < 0;
	out->size = (u8)labs(size);
}

struct notes {
	struct elf *elf;
	const char *provider;
	u64 base; /* .stapsdt.base, which shows how far prelink has moved the file; 0: there is none */
	int (*fn)(const struct usdt *probe, void *arg);
	void *arg;
};

static u64 read_word(const u8 *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The text at *p, which must end before `end`; *p advances behind it. NULL: it does not end. */
static const char *text_at(const u8 **p, const u8 *end)
{
	const char *text = (const char *)*p;
	const u8 *nul = memchr(*p, '\0', end - *p);

	if (!nul)
		return NULL;
	*p = nul + 1;
	return text;
}

static int on_note(const struct notes *n, const u8 *p, const u8 *end)
{
	u64 address, base, semaphore;
	const char *provider, *name, *args;
	struct usdt probe = {};

	if (end - p < 24)
		return 0;
	address = read_word(p);
	base = read_word(p + 8);
	semaphore = read_word(p + 16);
	p += 24;
	provider = text_at(&p, end);
	name = provider ? text_at(&p, end) : NULL;
	args = name ? text_at(&p, end) : NULL;
	if (!args || strcmp(provider, n->provider))
		return 0;
	if (n->base) {
		address += n->base - base;
		semaphore += semaphore ? n->base - base : 0;
	}
	probe.name = name;
	if (elf__offset(n->elf, address, &probe.offset))
		return 0;
	if (semaphore && elf__offset(n->elf, semaphore, &probe.semaphore))
		return 0;
	for (u32 i = 0; i < USDT_ARGS && *args; i++) {
		usdt__parse_arg(args, &probe.args[i]);
		args += strcspn(args, " ");
		args += strspn(args, " ");
	}
	return n->fn(&probe, n->arg);
}

int usdt__each(struct elf *elf, const char *provider, int (*fn)(const struct usdt *probe, void *arg), void *arg)
{
	struct notes n = { .elf = elf, .provider = provider, .fn = fn, .arg = arg };
	struct elf_section section;
	const u8 *data;
	u32 index = 0;
	u64 at = 0;
	int ret = 0;

	if (elf__section_data(elf, ".stapsdt.base", 0, &index, &section))
		n.base = section.addr;
	index = 0;
	data = elf__section_data(elf, ".note.stapsdt", 0, &index, &section);
	while (!ret && data && section.size - at >= 12) {
		u32 head[3], name, desc;

		memcpy(head, data + at, sizeof(head));
		at += sizeof(head);
		/* as 64-bit numbers they can't overflow, and neither is larger than what is left */
		name = head[0];
		desc = head[1];
		if (((u64)name + 3) / 4 * 4 + ((u64)desc + 3) / 4 * 4 > section.size - at)
			break;
		if (head[2] == NOTE_TYPE && name == 8 && !memcmp(data + at, "stapsdt", 8))
			ret = on_note(&n, data + at + 8, data + at + 8 + desc);
		at += ((u64)name + 3) / 4 * 4 + ((u64)desc + 3) / 4 * 4;
	}
	return ret;
}
