// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Symbol tables that are read in portions and not cached: the names of a library of PyTorch have 80 MB, and most of
 * them are never needed.
 */
#include <elf.h>

#include "elf/elf_private.h"
#include "util/array.h"

#define BATCH 2048 /* symbols that are read at once */

/* The string table of the symbol table of this type. */
static bool names_header(struct elf *elf, u32 type, GElf_Shdr *symbols, GElf_Shdr *names)
{
	Elf_Scn *scn;

	if (!elf__section_header(elf, NULL, type, symbols))
		return false;
	scn = elf_getscn(elf->elf, symbols->sh_link);
	return scn && gelf_getshdr(scn, names) && names->sh_type == SHT_STRTAB;
}

bool elf__names_hold(struct elf *elf, const char *text)
{
	struct elf *from[] = { elf, elf->debug[0], elf->debug[1] };
	GElf_Shdr symbols, names;

	for (u32 i = 0; i < ARRAY_LEN(from); i++)
		if (from[i] && names_header(from[i], SHT_SYMTAB, &symbols, &names) &&
		    elf__range_holds(from[i], names.sh_offset, names.sh_size, text))
			return true;
	return false;
}

/* The tables of elf__each_function(). */
static struct elf *functions_of(struct elf *elf, u32 table)
{
	return table < 2 ? elf : elf->debug[table - 2];
}

static u32 type_of_functions(u32 table)
{
	return table ? SHT_SYMTAB : SHT_DYNSYM;
}

static bool is_function(const Elf64_Sym *sym, const GElf_Shdr *names)
{
	u32 type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF &&
	       sym->st_name < names->sh_size && sym->st_name <= ELF_NAME_MAX;
}

static int each_of(struct elf *elf, u32 table, int (*fn)(const struct elf_function *f, void *arg), void *arg)
{
	struct elf *from = functions_of(elf, table);
	GElf_Shdr symbols, names;
	Elf64_Sym batch[BATCH];
	ssize_t n;
	int err = 0;

	if (!from || !names_header(from, type_of_functions(table), &symbols, &names))
		return 0;
	for (u64 at = 0; at < symbols.sh_size && !err; at += sizeof(batch)) {
		u64 left = symbols.sh_size - at;

		n = elf__read_at(from, batch, left < sizeof(batch) ? left : sizeof(batch), symbols.sh_offset + at);
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*batch) && !err; i++)
			if (is_function(&batch[i], &names))
				err = fn(&(struct elf_function){ .addr = batch[i].st_value,
								 .size = batch[i].st_size < ~0u ?
										 (u32)batch[i].st_size :
										 ~0u,
								 .table = table,
								 .name = batch[i].st_name },
					 arg);
		if (n <= 0)
			break;
	}
	return err;
}

int elf__each_function(struct elf *elf, int (*fn)(const struct elf_function *f, void *arg), void *arg)
{
	int err = 0;

	for (u32 table = 0; table < 2 + ELF_DEBUG_FILES && !err; table++)
		err = each_of(elf, table, fn, arg);
	return err;
}

bool elf__function_name(struct elf *elf, const struct elf_function *f, char *name, size_t len)
{
	struct elf *from = functions_of(elf, f->table);
	GElf_Shdr symbols, names;
	ssize_t n;

	if (!from || !names_header(from, type_of_functions(f->table), &symbols, &names) || f->name >= names.sh_size)
		return false;
	len = len - 1 < names.sh_size - f->name ? len - 1 : names.sh_size - f->name;
	n = elf__read_at(from, name, len, names.sh_offset + f->name);
	name[n > 0 ? n : 0] = '\0';
	return *name;
}
