// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files without section headers (`llvm-objcopy --strip-sections`, packers). The dynamic linker does not need them: its
 * segment PT_DYNAMIC says where the tables are. Such a file is read into memory, and headers of these tables are
 * appended, so that the other files here need not know of it.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_private.h"
#include "util/array.h"

#define IMAGE_MAX   (128ULL << 20)
#define DYNAMIC_MAX 65536 /* bytes of PT_DYNAMIC that are read: no real one has a tenth of it */

/* A table that PT_DYNAMIC has, with the tags of its address and of its size (0: it ends where another one begins). */
static const struct table {
	const char *name;
	u32 type;
	u32 addr, size;
} tables[] = {
	{ ".dynstr", SHT_STRTAB, DT_STRTAB, DT_STRSZ },	      { ".dynsym", SHT_DYNSYM, DT_SYMTAB, 0 },
	{ ".gnu.hash", SHT_GNU_HASH, DT_GNU_HASH, 0 },	      { ".gnu.version", SHT_GNU_versym, DT_VERSYM, 0 },
	{ ".gnu.version_r", SHT_GNU_verneed, DT_VERNEED, 0 }, { ".gnu.version_d", SHT_GNU_verdef, DT_VERDEF, 0 },
	{ ".rela.dyn", SHT_RELA, DT_RELA, DT_RELASZ },	      { ".rela.plt", SHT_RELA, DT_JMPREL, DT_PLTRELSZ },
};

#define STRINGS	     1 /* the index of .dynstr */
#define SYMBOLS	     2
#define SECTIONS_MAX 32
#define NAMES_MAX    512

struct made {
	u8 *image;
	u64 size; /* of the file */
	u64 end; /* where the names and headers are appended */
	Elf64_Shdr sections[SECTIONS_MAX];
	u32 n;
	char names[NAMES_MAX];
	u32 names_size;
};

static void add(struct made *m, const char *name, u32 type, u64 addr, u64 offset, u64 size)
{
	size_t len = strlen(name) + 1;

	if (m->n == SECTIONS_MAX || m->names_size + len > NAMES_MAX)
		return;
	memcpy(m->names + m->names_size, name, len);
	m->sections[m->n++] = (Elf64_Shdr){
		.sh_name = m->names_size,
		.sh_type = type,
		.sh_addr = addr,
		.sh_offset = offset,
		.sh_size = size,
		.sh_link = type == SHT_RELA || type == SHT_GNU_HASH || type == SHT_GNU_versym ? SYMBOLS : STRINGS,
	};
	m->names_size += len;
}

/* The value of a tag; 0: there is none. */
static u64 value_of(const Elf64_Dyn *dynamic, u64 n, u32 tag)
{
	for (u64 i = 0; tag && i < n && dynamic[i].d_tag != DT_NULL; i++)
		if (dynamic[i].d_tag == (Elf64_Sxword)tag)
			return dynamic[i].d_un.d_val;
	return 0;
}

/* Where the next table begins, or the segment ends. */
static u64 end_of(const Elf64_Dyn *dynamic, u64 n, u64 addr, u64 end)
{
	for (u32 i = 0; i < ARRAY_LEN(tables); i++) {
		u64 other = value_of(dynamic, n, tables[i].addr);

		if (other > addr && other < end)
			end = other;
	}
	return end;
}

static const Elf64_Phdr *segment_at(const Elf64_Phdr *segments, u32 n, u64 addr)
{
	for (u32 i = 0; i < n; i++)
		if (segments[i].p_type == PT_LOAD && addr >= segments[i].p_vaddr &&
		    addr - segments[i].p_vaddr < segments[i].p_filesz)
			return &segments[i];
	return NULL;
}

static void add_tables(struct made *m, const Elf64_Phdr *segments, u32 n_segments, const Elf64_Dyn *dynamic, u64 n)
{
	for (u32 i = 0; i < ARRAY_LEN(tables); i++) {
		const struct table *t = &tables[i];
		u64 addr = value_of(dynamic, n, t->addr), size = value_of(dynamic, n, t->size);
		const Elf64_Phdr *s = addr ? segment_at(segments, n_segments, addr) : NULL;

		if (!t->size && s)
			size = end_of(dynamic, n, addr, s->p_vaddr + s->p_filesz) - addr;
		/* the indices of the first two have to be right */
		add(m, t->name, s ? t->type : SHT_NULL, addr, s ? s->p_offset + (addr - s->p_vaddr) : 0, s ? size : 0);
	}
}

static void add_segments(struct made *m, const Elf64_Phdr *segments, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type == PT_DYNAMIC)
			add(m, ".dynamic", SHT_DYNAMIC, s->p_vaddr, s->p_offset, s->p_filesz);
		else if (s->p_type == PT_NOTE)
			add(m, ".note", SHT_NOTE, s->p_vaddr, s->p_offset, s->p_filesz);
		else if (s->p_type == PT_LOAD && s->p_flags & PF_X)
			/* the stubs of imported functions are somewhere in the code */
			add(m, ".plt", SHT_PROGBITS, s->p_vaddr, s->p_offset, s->p_filesz);
	}
}

static void make(struct made *m)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m->image;
	u32 n = eh->e_phnum;
	Elf64_Phdr *segments = calloc(n + 1, sizeof(*segments));
	Elf64_Dyn *dynamic = NULL;
	u64 bytes = 0;

	if (!segments || eh->e_phentsize != sizeof(*segments) || eh->e_phoff > m->size ||
	    n > (m->size - eh->e_phoff) / sizeof(*segments))
		goto out;
	memcpy(segments, m->image + eh->e_phoff, n * sizeof(*segments));
	for (u32 i = 0; i < n && !dynamic; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type != PT_DYNAMIC || s->p_offset > m->size || s->p_filesz > m->size - s->p_offset)
			continue;
		bytes = s->p_filesz < DYNAMIC_MAX ? s->p_filesz : DYNAMIC_MAX;
		dynamic = calloc(1, bytes + 1);
		if (dynamic)
			memcpy(dynamic, m->image + s->p_offset, bytes);
	}
	if (!dynamic)
		goto out;
	m->n = 1;
	m->names_size = 1;
	add_tables(m, segments, n, dynamic, bytes / sizeof(*dynamic));
	add_segments(m, segments, n);
	add(m, ".shstrtab", SHT_STRTAB, 0, m->end, NAMES_MAX);
	memcpy(m->image + m->end, m->names, NAMES_MAX);
	memcpy(m->image + m->end + NAMES_MAX, m->sections, m->n * sizeof(m->sections[0]));
	eh->e_shoff = m->end + NAMES_MAX;
	eh->e_shentsize = sizeof(m->sections[0]);
	eh->e_shnum = m->n;
	eh->e_shstrndx = m->n - 1;
out:
	free(segments);
	free(dynamic);
}

bool elf__lacks_sections(const struct elf *elf)
{
	Elf64_Ehdr eh;

	return elf__read_at(elf, &eh, sizeof(eh), 0) == (ssize_t)sizeof(eh) && eh.e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh.e_ident[EI_DATA] == ELFDATA2LSB && !eh.e_shnum && !eh.e_shoff;
}

void elf__make_sections(struct elf *elf)
{
	struct made m = { .size = elf->size, .end = (elf->size + 7) & ~7ULL };
	u64 size = m.end + NAMES_MAX + sizeof(m.sections);
	u64 done = 0;
	ssize_t n;

	if (m.size > IMAGE_MAX || !elf__take(elf, size))
		return;
	m.image = calloc(1, size);
	if (!m.image)
		return;
	while (done < m.size && (n = elf__read_at(elf, m.image + done, m.size - done, done)) > 0)
		done += n;
	make(&m);
	free(elf->image);
	elf->image = m.image;
	elf->size = size;
}
