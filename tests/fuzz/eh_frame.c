// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as an .eh_frame_hdr and an .eh_frame in an otherwise valid ELF file: looks up functions by address
 * and how each of their instructions is unwound. The first two bytes are the offset of the second section.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf.h"
#include "fuzz.h"

#define TABLES	 0x400 /* file offset and address of the tables */
#define TEXT	 0x100 /* address of the code */
#define TEXT_END 0x200

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[5];
	char names[64];
};

static void fill(struct image *m, size_t size, size_t split)
{
	static const char names[] = "\0.text\0.eh_frame_hdr\0.eh_frame\0.shstrtab";
	const size_t at = offsetof(struct image, names);

	*m = (struct image){
		.head = { .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(m->head),
			  .e_phoff = offsetof(struct image, segments),
			  .e_phentsize = sizeof(m->segments[0]),
			  .e_phnum = 2,
			  .e_shoff = offsetof(struct image, sections),
			  .e_shentsize = sizeof(m->sections[0]),
			  .e_shnum = 5,
			  .e_shstrndx = 4 },
		.segments = { { PT_LOAD, PF_R | PF_X, 0, 0, 0, TABLES + size, TABLES + size, 0x1000 },
			      { PT_GNU_EH_FRAME, PF_R, TABLES, TABLES, TABLES, split, split, 4 } },
		.sections = { {},
			      { 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, TEXT, TEXT_END - TEXT, 0, 0, 1, 0 },
			      { 7, SHT_PROGBITS, SHF_ALLOC, TABLES, TABLES, split, 0, 0, 1, 0 },
			      { 21, SHT_PROGBITS, SHF_ALLOC, TABLES + split, TABLES + split, size - split, 0, 0, 1, 0 },
			      { 31, SHT_STRTAB, 0, 0, at, sizeof(names), 0, 0, 1, 0 } },
	};
	memcpy(m->head.e_ident, ELFMAG "\2\1\1", 7);
	memcpy(m->names, names, sizeof(names));
}

static void ask(struct elf *elf)
{
	struct elf_unwind unwind;
	u64 start, size;

	for (u64 addr = 0; addr < TABLES; addr += addr >= TEXT && addr < TEXT_END ? 3 : 61) {
		if (!elf__function_at(elf, addr, &start, &size))
			fuzz__use(start + size);
		if (!elf__unwind(elf, addr, &unwind))
			fuzz__use((u64)unwind.cfa + (u64)unwind.frame_pointer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 room[TABLES + 65536];
	struct elf *elf;
	size_t split;
	int fd;

	_Static_assert(sizeof(struct image) <= TABLES, "the tables lie behind it");
	if (size < 2 || size > 65536)
		return 0;
	split = (data[0] | (size_t)data[1] << 8) % (size - 1);
	fill((struct image *)room, size - 2, split);
	memcpy(room + TABLES, data + 2, size - 2);
	fd = memfd_create("eh_frame", MFD_CLOEXEC);
	if (fd < 0 || write(fd, room, TABLES + size - 2) != (ssize_t)(TABLES + size - 2))
		abort();
	if (!elf__open(&elf, fd))
		ask(elf);
	elf__close(elf);
	close(fd);
	return 0;
}
