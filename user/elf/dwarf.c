// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#include "elf/dwarf.h"

#define DIES_MAX   (1u << 24) /* DIEs that are searched; NCCL 2.32 has its struct ncclComm within the first 300 */
#define STRUCT_MAX (64ULL << 20) /* bytes */

/* Finds the definition of the struct, not a declaration, at the top level of a unit. */
static int find_struct(Dwarf *dw, const char *name, Dwarf_Die *out)
{
	Dwarf_CU *cu = NULL;
	const char *have;
	Dwarf_Die unit;
	u32 n = 0;

	while (!dwarf_get_units(dw, cu, &cu, NULL, NULL, &unit, NULL)) {
		if (dwarf_child(&unit, out))
			continue;
		do {
			if (n++ == DIES_MAX)
				return -ENOENT;
			if (dwarf_tag(out) != DW_TAG_structure_type || dwarf_hasattr(out, DW_AT_declaration))
				continue;
			have = dwarf_diename(out);
			if (have && !strcmp(have, name))
				return 0;
		} while (!dwarf_siblingof(out, out));
	}
	return -ENOENT;
}

static int member_of(Dwarf_Die *die, u64 struct_size, struct dwarf_member *m)
{
	Dwarf_Attribute at;
	Dwarf_Die type;
	Dwarf_Word offset, size;

	/* DWARF 2 may have an expression instead */
	if (!dwarf_attr(die, DW_AT_data_member_location, &at) || dwarf_formudata(&at, &offset))
		return -EPROTO;
	if (!dwarf_attr(die, DW_AT_type, &at) || !dwarf_formref_die(&at, &type) || dwarf_aggregate_size(&type, &size))
		return -EPROTO;
	if (size != m->size || offset > struct_size || size > struct_size - offset)
		return -EPROTO;
	m->offset = offset;
	return 0;
}

static int find_member(Dwarf_Die *type, u64 struct_size, struct dwarf_member *m)
{
	Dwarf_Die die;
	const char *have;
	u32 n = 0;

	if (dwarf_child(type, &die))
		return -ENOKEY;
	do {
		have = dwarf_tag(&die) == DW_TAG_member ? dwarf_diename(&die) : NULL;
		if (have && !strcmp(have, m->name))
			return member_of(&die, struct_size, m);
	} while (n++ < DIES_MAX && !dwarf_siblingof(&die, &die));
	return -ENOKEY;
}

int dwarf__members(int fd, const char *type, struct dwarf_member *members, u32 n)
{
	int size, err = -ENODATA;
	Dwarf_Die die;
	Dwarf *dw;
	Elf *elf;
	u32 i;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	if (!dw)
		goto out;
	err = find_struct(dw, type, &die);
	if (err)
		goto out;
	size = dwarf_bytesize(&die);
	if (size < 0 || (u64)size > STRUCT_MAX)
		err = -EPROTO;
	for (i = 0; i < n && !err; i++)
		err = find_member(&die, size, &members[i]);
out:
	dwarf_end(dw);
	elf_end(elf);
	return err;
}

const char *dwarf__error(int err)
{
	switch (err) {
	case -ENODATA:
		return "it has no debug information (DWARF)";
	case -ENOENT:
		return "its debug information does not have the struct";
	case -ENOKEY:
		return "its struct has other members than those known";
	case -EPROTO:
		return "its debug information is invalid";
	case -EFAULT:
		return "its debug information is damaged, or too large to be read";
	}
	return strerror(-err);
}
