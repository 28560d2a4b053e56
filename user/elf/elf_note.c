// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Notes of an ELF file: its build id, and the properties of its code. */
#include <elf.h>
#include <string.h>

#include "elf/elf_private.h"

const u8 *elf__properties(struct elf *elf, u64 *size)
{
	u32 i;

	for (i = 0; i < elf->n_segments; i++) {
		if (elf->segments[i].p_type != PT_GNU_PROPERTY)
			continue;
		*size = elf->segments[i].p_filesz;
		return elf__bytes(elf, elf->segments[i].p_vaddr, size);
	}
	return NULL;
}

/* Parses a note section or segment: name size, descriptor size, type, "GNU", the id; each padded to four bytes. */
static bool note_build_id(struct elf *elf, const u8 *data, u64 size)
{
	u64 pos = 0, name_len, desc_len, i;
	Elf64_Nhdr note;

	while (size - pos >= sizeof(note)) {
		memcpy(&note, data + pos, sizeof(note));
		pos += sizeof(note);
		name_len = ((u64)note.n_namesz + 3) & ~3ULL;
		desc_len = ((u64)note.n_descsz + 3) & ~3ULL;
		if (name_len > size - pos || desc_len > size - pos - name_len)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(data + pos, "GNU", 4) &&
		    note.n_descsz && note.n_descsz * 2ULL < sizeof(elf->build_id)) {
			for (i = 0; i < note.n_descsz; i++) {
				elf->build_id[2 * i] = "0123456789abcdef"[data[pos + name_len + i] >> 4];
				elf->build_id[2 * i + 1] = "0123456789abcdef"[data[pos + name_len + i] & 15];
			}
			return true;
		}
		pos += name_len + desc_len;
	}
	return false;
}

const char *elf__build_id(struct elf *elf)
{
	struct elf_section sec;
	const u8 *data;
	u32 index = 0, i;
	u64 len;

	if (elf->build_id[0])
		return elf->build_id;
	while ((data = elf__section_data(elf, NULL, SHT_NOTE, &index, &sec)))
		if (note_build_id(elf, data, sec.size))
			return elf->build_id;
	for (i = 0; i < elf->n_segments; i++) {
		if (elf->segments[i].p_type != PT_NOTE)
			continue;
		len = elf->segments[i].p_filesz;
		data = elf__bytes(elf, elf->segments[i].p_vaddr, &len);
		if (data && note_build_id(elf, data, len))
			break;
	}
	return elf->build_id;
}
