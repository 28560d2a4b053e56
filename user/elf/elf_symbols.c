// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All symbols of a file: its dynamic ones, its .symtab, and those that stripping has moved into .gnu_debugdata or
 * into a separate debug file. The latter two have the same addresses; offsets always refer to the file itself.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_private.h"
#include "util/array.h"

const char *elf__string_table(struct elf *elf, u32 section, u64 *size)
{
	Elf_Scn *scn = elf_getscn(elf->elf, section);
	Elf_Data *data;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_STRTAB)
		return NULL;
	data = elf__load(elf, scn);
	if (!data || !data->d_buf || !data->d_size || ((const char *)data->d_buf)[data->d_size - 1])
		return NULL;
	*size = data->d_size;
	return data->d_buf;
}

bool elf__symbols(struct elf *elf, u32 type, struct elf_symbols *out)
{
	struct elf_section sec;
	u32 index = 0;

	out->syms = elf__section_data(elf, NULL, type, &index, &sec);
	if (!out->syms)
		return false;
	out->n = sec.size / sizeof(Elf64_Sym);
	out->names = elf__string_table(elf, sec.link, &out->names_size);
	return out->names;
}

const char *elf_symbols__get(const struct elf_symbols *s, u64 i, Elf64_Sym *sym)
{
	if (i >= s->n)
		return NULL;
	memcpy(sym, s->syms + i * sizeof(*sym), sizeof(*sym));
	return sym->st_name < s->names_size ? s->names + sym->st_name : NULL;
}

/* One symbol table: of the file itself, or of a file with more symbols of it. */
struct table {
	struct elf *elf; /* the file that contains the table */
	struct elf_symbols symbols;
	const u8 *versions; /* NULL: none */
	u64 versions_size;
	bool dynamic;
};

static bool open_table(struct table *t, struct elf *elf, struct elf *from, bool dynamic)
{
	struct elf_section sec = {};
	u32 index = 0;

	*t = (struct table){ .elf = elf, .dynamic = dynamic };
	if (!from || !elf__symbols(from, dynamic ? SHT_DYNSYM : SHT_SYMTAB, &t->symbols))
		return false;
	if (dynamic)
		t->versions = elf__section_data(from, NULL, SHT_GNU_versym, &index, &sec);
	t->versions_size = sec.size;
	return true;
}

/* The next table in the order of lookup; i from 0. false: there are no more. */
static bool next_table(struct elf *elf, u32 *i, struct table *t)
{
	struct elf *from[] = { elf, elf, elf->debug[0], elf->debug[1] };

	while (*i < ARRAY_LEN(from)) {
		u32 k = (*i)++;

		if (open_table(t, elf, from[k], k == 0))
			return true;
	}
	return false;
}

/* The name of the ith symbol if it is defined and has an address. */
static const char *defined(const struct table *t, u64 i, Elf64_Sym *sym)
{
	const char *name = elf_symbols__get(&t->symbols, i, sym);
	u32 type = name ? ELF64_ST_TYPE(sym->st_info) : STT_SECTION;

	if (!name || !*name || sym->st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE || type == STT_TLS)
		return NULL;
	return name;
}

static bool fill(const struct table *t, u64 i, const char *name, const Elf64_Sym *sym, struct elf_symbol *out)
{
	u32 type = ELF64_ST_TYPE(sym->st_info);
	u16 v;

	*out = (struct elf_symbol){
		.name = name,
		.addr = sym->st_value,
		.size = sym->st_size,
		.dynamic = t->dynamic,
		.function = type == STT_FUNC || type == STT_GNU_IFUNC,
		.default_version = true,
	};
	if (t->versions && (i + 1) * sizeof(v) <= t->versions_size) {
		memcpy(&v, t->versions + i * sizeof(v), sizeof(v));
		out->default_version = !(v & 0x8000);
	}
	return !elf__offset(t->elf, out->addr, &out->offset);
}

int elf__each_symbol(struct elf *elf, int (*fn)(const struct elf_symbol *sym, void *arg), void *arg)
{
	struct elf_symbol s;
	struct table t;
	Elf64_Sym sym;
	u32 which = 0;
	int err;

	while (next_table(elf, &which, &t))
		for (u64 i = 1; i < t.symbols.n; i++) {
			const char *name = defined(&t, i, &sym);

			if (!name || !fill(&t, i, name, &sym, &s))
				continue;
			err = fn(&s, arg);
			if (err)
				return err;
		}
	return 0;
}

static int by_name(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

u32 elf__find_symbols(struct elf *elf, const char *const *names, u32 n, struct elf_symbol *out)
{
	u32 which = 0, missing = n;
	struct elf_symbol s;
	struct table t;
	Elf64_Sym sym;

	memset(out, 0, n * sizeof(*out));
	while (missing && next_table(elf, &which, &t))
		for (u64 i = 1; i < t.symbols.n && missing; i++) {
			const char *name = defined(&t, i, &sym);
			const char *const *found = name ? bsearch(name, names, n, sizeof(*names), by_name) : NULL;

			if (!found || out[found - names].name || !fill(&t, i, name, &sym, &s) || !s.default_version)
				continue;
			out[found - names] = s;
			missing--;
		}
	return missing;
}

int elf__find_symbol(struct elf *elf, const char *name, struct elf_symbol *out)
{
	return elf__find_symbols(elf, &name, 1, out) ? -ENOENT : 0;
}

/* The hash of .gnu.hash (dl_new_hash of the dynamic linker). */
static u32 hash_of(const char *name)
{
	u32 h = 5381;

	while (*name)
		h = h * 33 + (u8)*name++;
	return h;
}

/* A section as an array of u32; reads of numbers beyond its end return 0. */
static u32 word(const u8 *data, u64 size, u64 i)
{
	u32 w = 0;

	if (i < size / sizeof(w))
		memcpy(&w, data + i * sizeof(w), sizeof(w));
	return w;
}

/*
 * The first index into .dynsym, and where its hash is in .gnu.hash: words of the header (buckets, first symbol, words
 * of the Bloom filter, shift), the filter, the buckets, the hashes. 0: no exported symbol has this name, which the
 * filter mostly shows without .dynsym and .dynstr.
 */
static u32 find_hash(const u8 *data, u64 size, u32 h, u64 *at)
{
	u32 buckets = word(data, size, 0), first = word(data, size, 1), filters = word(data, size, 2),
	    shift = word(data, size, 3) & 31, i;
	u64 filter = filters ? 4 + 2 * (u64)(h / 64 % filters) : 0;
	u64 bits = word(data, size, filter) | (u64)word(data, size, filter + 1) << 32;

	if (!buckets || !filters || !(bits >> h % 64 & bits >> (h >> shift) % 64 & 1))
		return 0;
	i = word(data, size, 4 + 2 * (u64)filters + h % buckets);
	*at = 4 + 2 * (u64)filters + buckets + i - first;
	return i < first ? 0 : i;
}

static bool is_exported(const struct table *t, u64 i, const char *name)
{
	struct elf_symbol s;
	Elf64_Sym sym;
	const char *have = defined(t, i, &sym);

	return have && !strcmp(have, name) && fill(t, i, have, &sym, &s) && s.default_version;
}

bool elf__exports(struct elf *elf, const char *name)
{
	struct elf_section sec;
	u32 index = 0, h = hash_of(name), found;
	const u8 *hashes = elf__section_data(elf, NULL, SHT_GNU_HASH, &index, &sec);
	struct table t;
	u64 at = 0;

	found = hashes ? find_hash(hashes, sec.size, h, &at) : 1;
	if (!found || !open_table(&t, elf, elf, true))
		return false;
	for (u64 i = found; i < t.symbols.n; i++, at++) {
		u32 other = hashes ? word(hashes, sec.size, at) : h;

		if ((other | 1) == (h | 1) && is_exported(&t, i, name))
			return true;
		/* the last one of its bucket has the lowest bit */
		if (hashes && (other & 1 || at >= sec.size / sizeof(other)))
			return false;
	}
	return false;
}

bool elf__provides(struct elf *elf, const char *name)
{
	struct elf_symbol sym;
	bool is_there = elf__exports(elf, name);

	for (u32 i = 0; i < elf->n_provided; i++)
		if (!strcmp(elf->provided[i].name, name))
			return elf->provided[i].is_there;
	/* a library that does not export it is not the one: its .symtab may have 100 MiB */
	if (!is_there && !*elf__soname(elf))
		is_there = !elf__find_symbol(elf, name, &sym);
	if (elf->n_provided < ARRAY_LEN(elf->provided)) {
		elf->provided[elf->n_provided].name = name;
		elf->provided[elf->n_provided++].is_there = is_there;
	}
	return is_there;
}

bool elf__stripped(struct elf *elf)
{
	GElf_Shdr sh;

	return !elf__section_header(elf, NULL, SHT_SYMTAB, &sh);
}
