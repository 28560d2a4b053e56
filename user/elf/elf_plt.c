// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How a binary calls functions of other objects: the linker gives each function a slot (a GOT entry with a
 * relocation), which the dynamic loader fills, and usually a stub in .plt, .plt.sec or .plt.got that jumps through
 * the slot. Neither needs a symbol of its own, so stripped binaries have both.
 */
#include <elf.h>
#include <string.h>

#include "elf/elf_private.h"
#include "util/array.h"

static bool is_slot(u64 type)
{
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

void elf__each_slot(struct elf *elf, bool (*fn)(const char *name, u64 slot, void *arg), void *arg)
{
	struct elf_symbols all;
	struct elf_section sec;
	const char *name;
	Elf64_Rela rela;
	Elf64_Sym sym;
	const u8 *data;
	u32 index = 0;
	u64 i;

	if (!elf__symbols(elf, SHT_DYNSYM, &all))
		return;
	while ((data = elf__section_data(elf, NULL, SHT_RELA, &index, &sec))) {
		for (i = 0; i < sec.size / sizeof(rela); i++) {
			memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
			if (!is_slot(ELF64_R_TYPE(rela.r_info)))
				continue;
			name = elf_symbols__get(&all, ELF64_R_SYM(rela.r_info), &sym);
			if (name && !fn(name, rela.r_offset, arg))
				return;
		}
	}
}

struct slot_search {
	const char *name;
	u64 *addrs;
	u32 n, max;
};

static bool on_slot(const char *name, u64 slot, void *arg)
{
	struct slot_search *s = arg;

	if (s->n < s->max && !strcmp(name, s->name))
		s->addrs[s->n++] = slot;
	return s->n < s->max;
}

u32 elf__got_slots(struct elf *elf, const char *name, u64 *addrs, u32 max)
{
	struct slot_search s = { name, addrs, 0, max };

	elf__each_slot(elf, on_slot, &s);
	return s.n;
}

/* The start of the stub whose `jmp *slot(%rip)` is at pos: endbr64 and a bnd prefix may precede it. */
static u64 stub_start(const u8 *data, u64 pos)
{
	static const u8 endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (pos >= 1 && data[pos - 1] == 0xf2)
		pos--;
	if (pos >= sizeof(endbr64) && !memcmp(data + pos - sizeof(endbr64), endbr64, sizeof(endbr64)))
		pos -= sizeof(endbr64);
	return pos;
}

static void stubs_in(const u8 *data, const struct elf_section *sec, void (*fn)(u64 stub, u64 slot, void *arg),
		     void *arg)
{
	s32 rel;

	for (u64 pos = 0; sec->size >= 6 && pos <= sec->size - 6; pos++) {
		if (data[pos] != 0xff || data[pos + 1] != 0x25)
			continue;
		memcpy(&rel, data + pos + 2, sizeof(rel));
		fn(sec->addr + stub_start(data, pos), sec->addr + pos + 6 + (u64)(s64)rel, arg);
	}
}

void elf__each_stub(struct elf *elf, void (*fn)(u64 stub, u64 slot, void *arg), void *arg)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct elf_section sec;
	const u8 *data;

	for (u32 i = 0; i < ARRAY_LEN(sections); i++) {
		u32 index = 0;

		while ((data = elf__section_data(elf, sections[i], SHT_PROGBITS, &index, &sec)))
			stubs_in(data, &sec, fn, arg);
	}
}

struct stub_search {
	u64 slots[8];
	u32 n_slots;
	u64 *addrs;
	u32 n, max;
};

static void on_stub(u64 stub, u64 slot, void *arg)
{
	struct stub_search *s = arg;

	for (u32 i = 0; i < s->n_slots && s->n < s->max; i++) {
		if (slot != s->slots[i])
			continue;
		s->addrs[s->n++] = stub;
		return;
	}
}

u32 elf__plt_stubs(struct elf *elf, const char *name, u64 *addrs, u32 max)
{
	struct stub_search s = { .addrs = addrs, .max = max };

	s.n_slots = elf__got_slots(elf, name, s.slots, ARRAY_LEN(s.slots));
	if (s.n_slots)
		elf__each_stub(elf, on_stub, &s);
	return s.n;
}
