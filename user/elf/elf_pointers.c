// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Constants and the pointers to them, in files without symbols. */
#include <elf.h>
#include <string.h>

#include "elf/elf_private.h"

bool elf__section_range(struct elf *elf, const char *name, u64 *addr, u64 *size)
{
	GElf_Shdr sh;

	if (!elf__section_header(elf, name, 0, &sh))
		return false;
	*addr = sh.sh_addr;
	*size = sh.sh_size;
	return true;
}

static const u8 *bytes_of(struct elf *elf, const GElf_Phdr *p, u64 *size)
{
	*size = p->p_type == PT_LOAD ? p->p_filesz : 0;
	return elf__bytes(elf, p->p_vaddr, size);
}

void elf__each_constant(struct elf *elf, const char *text, bool (*fn)(u64 addr, void *arg), void *arg)
{
	u64 len = strlen(text) + 1, size;

	for (u32 i = 0; i < elf->n_segments; i++) {
		const GElf_Phdr *p = &elf->segments[i];
		const u8 *bytes = p->p_flags & PF_W ? NULL : bytes_of(elf, p, &size), *at = bytes;

		while (at && (at = memmem(at, size - (u64)(at - bytes), text, len))) {
			if (!fn(p->p_vaddr + (u64)(at - bytes), arg))
				return;
			at++;
		}
	}
}

void elf__each_pointer(struct elf *elf, u64 addr, bool (*fn)(u64 at, void *arg), void *arg)
{
	struct elf_section sec;
	Elf64_Rela rela;
	const u8 *data;
	u32 index = 0;
	u64 size, word;

	/* in a program at fixed addresses, and with packed relocations (DT_RELR), only the data has the address */
	for (u32 i = 0; i < elf->n_segments; i++) {
		const GElf_Phdr *p = &elf->segments[i];

		data = p->p_flags & PF_W ? bytes_of(elf, p, &size) : NULL;
		for (u64 at = -p->p_vaddr & 7; data && at + sizeof(word) <= size; at += sizeof(word)) {
			memcpy(&word, data + at, sizeof(word));
			if (word == addr && !fn(p->p_vaddr + at, arg))
				return;
		}
	}
	while ((data = elf__section_data(elf, NULL, SHT_RELA, &index, &sec)))
		for (u64 i = 0; i < sec.size / sizeof(rela); i++) {
			memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE && (u64)rela.r_addend == addr &&
			    !fn(rela.r_offset, arg))
				return;
		}
}
