// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Symbol versions: those that a file defines, and those that it needs from other objects. */
#include <elf.h>
#include <string.h>

#include "elf/elf_private.h"

#define ENTRIES_MAX 4096 /* glibc defines some 50 */

/* A table of linked entries, and their names. */
struct versions {
	const u8 *data;
	u64 size;
	const char *names;
	u64 names_size;
};

static bool open_versions(struct elf *elf, u32 type, struct versions *v)
{
	struct elf_section sec;
	u32 index = 0;

	v->data = elf__section_data(elf, NULL, type, &index, &sec);
	if (!v->data)
		return false;
	v->size = sec.size;
	v->names = elf__string_table(elf, sec.link, &v->names_size);
	return v->names;
}

static bool copy(const struct versions *v, u64 at, void *to, size_t size)
{
	if (at > v->size || size > v->size - at)
		return false;
	memcpy(to, v->data + at, size);
	return true;
}

bool elf__defines_version(struct elf *elf, const char *name)
{
	struct versions v;
	Elf64_Verdef def;
	Elf64_Verdaux aux;
	u64 at = 0;

	if (!open_versions(elf, SHT_GNU_verdef, &v))
		return false;
	for (u32 i = 0; i < ENTRIES_MAX && copy(&v, at, &def, sizeof(def)); i++, at += def.vd_next) {
		if (copy(&v, at + def.vd_aux, &aux, sizeof(aux)) && aux.vda_name < v.names_size &&
		    !strcmp(v.names + aux.vda_name, name))
			return true;
		if (!def.vd_next)
			break;
	}
	return false;
}

int elf__each_needed_version(struct elf *elf, int (*fn)(const char *version, void *arg), void *arg)
{
	struct versions v;
	Elf64_Verneed need;
	u64 at = 0;

	if (!open_versions(elf, SHT_GNU_verneed, &v))
		return 0;
	for (u32 i = 0; i < ENTRIES_MAX && copy(&v, at, &need, sizeof(need)); i++, at += need.vn_next) {
		u64 next = at + need.vn_aux;
		Elf64_Vernaux aux;

		for (u32 k = 0; k < need.vn_cnt && k < ENTRIES_MAX && copy(&v, next, &aux, sizeof(aux)); k++) {
			int err = aux.vna_name < v.names_size ? fn(v.names + aux.vna_name, arg) : 0;

			if (err)
				return err;
			next += aux.vna_next;
		}
		if (!need.vn_next)
			break;
	}
	return 0;
}
