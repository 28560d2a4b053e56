/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internal to the files that implement elf.h. */
#pragma once

#include <gelf.h>

#include "elf/elf.h"

/* Bytes of the file that were read once and are cached. */
struct elf_block {
	u64 offset;
	u64 size;
	u8 *data;
};

#define ELF_DEBUG_FILES 2

struct elf {
	int fd; /* -1: the file is in memory */
	bool own_fd; /* elf__close() closes fd */
	u8 *image; /* the file in memory, freed with the elf; NULL: it is read through fd */
	Elf *elf;
	u64 size; /* of the file */
	GElf_Phdr *segments;
	u32 n_segments;
	struct elf_block *blocks;
	u32 n_blocks;
	u8 *loaded; /* a bit per section: libelf has its bytes; NULL: no section was read */
	u64 cached_bytes; /* cached bytes of the file */
	bool over_budget; /* a limit was exceeded */
	char build_id[129];
	const char *soname; /* NULL: not looked up yet */
	struct {
		const char *name;
		bool is_there;
	} provided[8]; /* answers of elf__provides() */
	u32 n_provided;
	struct elf *debug[ELF_DEBUG_FILES]; /* files with more symbols of this one: .gnu_debugdata, the debug file */
};

struct elf_section {
	u64 addr;
	u64 size; /* of its data in the file */
	u32 link;
};

struct elf_symbols {
	const u8 *syms; /* Elf64_Sym, possibly unaligned */
	u64 n;
	const char *names; /* ends with a NUL */
	u64 names_size;
};

/* In elf_sections.c: reads a file without section headers into memory, and adds those of the tables in PT_DYNAMIC. */
bool elf__lacks_sections(const struct elf *elf);
void elf__make_sections(struct elf *elf);
/* As elf__open, for a file in memory, which is always freed. */
int elf__open_image(struct elf **out, u8 *image, u64 size);
/*
 * The data of the next section after *index with this name (NULL: any) and type (0: any) that has bytes in the file;
 * NULL if there is none. Begin with *index = 0.
 */
const u8 *elf__section_data(struct elf *elf, const char *name, u32 type, u32 *index, struct elf_section *out);
/* The section's bytes, which count towards the limits; NULL: it has none, or a limit was exceeded. */
Elf_Data *elf__load(struct elf *elf, Elf_Scn *scn);
/*
 * The header of the first section with this name (NULL: any) and type (0: any) that has bytes in the file; reads no
 * more than the sections' names. false: there is none.
 */
bool elf__section_header(struct elf *elf, const char *name, u32 type, GElf_Shdr *out);
/* As pread(2). */
ssize_t elf__read_at(const struct elf *elf, void *data, size_t len, u64 offset);
/* Do these bytes of the file contain the text? They are not cached: some sections have tens of MiB. */
bool elf__range_holds(const struct elf *elf, u64 offset, u64 size, const char *text);
/* NULL: it has none. */
const char *elf__section_name(struct elf *elf, const GElf_Shdr *sh);
/* Accounts for bytes that are about to be allocated for the file. false: a limit would be exceeded. */
bool elf__take(struct elf *elf, u64 bytes);
/* The contents of a string table, which are known to end with a NUL. */
const char *elf__string_table(struct elf *elf, u32 section, u64 *size);
/* The symbol table of type SHT_DYNSYM or SHT_SYMTAB. */
bool elf__symbols(struct elf *elf, u32 type, struct elf_symbols *out);
/* The ith symbol and its name; NULL if it has none or i is out of range. */
const char *elf_symbols__get(const struct elf_symbols *s, u64 i, Elf64_Sym *sym);
