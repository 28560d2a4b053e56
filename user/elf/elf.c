// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Headers, sections and bytes of an ELF file.
 *
 * The file belongs to the user who runs the target, so no number in it is trusted: sections are used raw, as libelf
 * returns them (bounded by the file), structs are copied out of them, strings must end inside their table, and bytes
 * are read with pread, never mapped (access to a mapping of a file that was truncated raises SIGBUS).
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_private.h"
#include "util/array.h"

#define BLOCK	     65536
#define BYTES_MAX    (256ULL << 20) /* bytes of one request; no known text segment is larger */
#define FILE_MAX     (256ULL << 20) /* bytes of one file that are held in memory */
#define ALL_MAX	     (448ULL << 20) /* bytes of all open files */
#define SECTIONS_MAX 65536 /* libelf allocates about 200 bytes for each when it opens the file */

static u64 all_cached; /* bytes; shared by threads that read different files */

/* Accounts for memory that is about to be allocated for the file. Returns false if a limit would be exceeded. */
bool elf__take(struct elf *elf, u64 bytes)
{
	u64 all = __atomic_add_fetch(&all_cached, bytes, __ATOMIC_RELAXED);

	if (bytes <= FILE_MAX && elf->cached_bytes + bytes <= FILE_MAX && all <= ALL_MAX) {
		elf->cached_bytes += bytes;
		return true;
	}
	__atomic_sub_fetch(&all_cached, bytes, __ATOMIC_RELAXED);
	elf->over_budget = true;
	return false;
}

static void give_back(struct elf *elf, u64 bytes)
{
	elf->cached_bytes -= bytes;
	__atomic_sub_fetch(&all_cached, bytes, __ATOMIC_RELAXED);
}

bool elf__over_budget(const struct elf *elf)
{
	return elf->over_budget || (elf->debug[0] && elf->debug[0]->over_budget) ||
	       (elf->debug[1] && elf->debug[1]->over_budget);
}

u64 elf__held(const struct elf *elf)
{
	u64 bytes = elf->cached_bytes;

	for (u32 i = 0; i < ELF_DEBUG_FILES; i++)
		bytes += elf->debug[i] ? elf->debug[i]->cached_bytes : 0;
	return bytes;
}

u64 elf__all_held(void)
{
	return __atomic_load_n(&all_cached, __ATOMIC_RELAXED);
}

static int read_headers(struct elf *elf)
{
	GElf_Ehdr eh;
	size_t n, i;

	if (elf_kind(elf->elf) != ELF_K_ELF || !gelf_getehdr(elf->elf, &eh))
		return -ENOEXEC;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (eh.e_machine != EM_X86_64 || (eh.e_type != ET_EXEC && eh.e_type != ET_DYN))
		return -ENOEXEC;
	if (elf_getphdrnum(elf->elf, &n) || !n || n > 0xffff)
		return -ENOEXEC;
	elf->segments = calloc(n, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (!gelf_getphdr(elf->elf, i, &elf->segments[i]))
			return -ENOEXEC;
	elf->n_segments = n;
	return 0;
}

ssize_t elf__read_at(const struct elf *elf, void *data, size_t len, u64 offset)
{
	if (!elf->image)
		return pread(elf->fd, data, len, (off_t)offset);
	if (offset >= elf->size)
		return 0;
	len = len < elf->size - offset ? len : elf->size - offset;
	memcpy(data, elf->image + offset, len);
	return (ssize_t)len;
}

/*
 * When libelf opens a file, it allocates a table of all sections, as many as the header claims and the file has room
 * for: in a sparse file that may be billions.
 */
static int check_sections(const struct elf *elf)
{
	Elf64_Ehdr eh;
	Elf64_Shdr first;

	if (elf__read_at(elf, &eh, sizeof(eh), 0) != (ssize_t)sizeof(eh) || eh.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	if (eh.e_shnum || !eh.e_shoff)
		return 0;
	/* if the number does not fit into e_shnum, sh_size of the first section header contains it */
	if (elf__read_at(elf, &first, sizeof(first), eh.e_shoff) == (ssize_t)sizeof(first) &&
	    first.sh_size > SECTIONS_MAX)
		return -ENOEXEC;
	return 0;
}

static void begin(struct elf *elf)
{
	elf->elf = elf->image ? elf_memory((char *)elf->image, elf->size) : elf_begin(elf->fd, ELF_C_READ, NULL);
}

static int open_elf(struct elf **out, const struct elf *file)
{
	struct elf *elf = calloc(1, sizeof(*elf));
	int err;

	if (!elf) {
		free(file->image);
		return -ENOMEM;
	}
	*elf = *file;
	elf_version(EV_CURRENT);
	if (elf__lacks_sections(elf))
		elf__make_sections(elf);
	err = check_sections(elf);
	if (!err) {
		begin(elf);
		err = elf->elf ? read_headers(elf) : -ENOEXEC;
	}
	if (err) {
		elf__close(elf);
		return err;
	}
	*out = elf;
	return 0;
}

int elf__open(struct elf **out, int fd)
{
	struct stat st;

	*out = NULL;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	return open_elf(out, &(struct elf){ .fd = fd, .size = st.st_size });
}

int elf__open_image(struct elf **out, u8 *image, u64 size)
{
	*out = NULL;
	return open_elf(out, &(struct elf){ .fd = -1, .image = image, .size = size });
}

/* Frees everything that was read, except for the segments and the build id. */
static void drop_contents(struct elf *elf)
{
	for (u32 i = 0; i < elf->n_blocks; i++)
		free(elf->blocks[i].data);
	free(elf->blocks);
	elf->blocks = NULL;
	elf->n_blocks = 0;
	free(elf->loaded);
	elf->loaded = NULL;
	for (u32 i = 0; i < ELF_DEBUG_FILES; i++) {
		elf__close(elf->debug[i]);
		elf->debug[i] = NULL;
	}
	elf_end(elf->elf);
	elf->elf = NULL;
	give_back(elf, elf->cached_bytes);
}

void elf__close(struct elf *elf)
{
	if (!elf)
		return;
	drop_contents(elf);
	free(elf->segments);
	if (elf->own_fd)
		close(elf->fd);
	free(elf->image);
	free(elf);
}

Elf_Data *elf__load(struct elf *elf, Elf_Scn *scn)
{
	size_t index = elf_ndxscn(scn), n;
	GElf_Shdr sh;

	if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS || elf_getshdrnum(elf->elf, &n) || index >= n)
		return NULL;
	if (!elf->loaded)
		elf->loaded = calloc(n / 8 + 1, 1);
	if (!elf->loaded)
		return NULL;
	/* libelf caches what it has read */
	if (!(elf->loaded[index / 8] & 1 << index % 8)) {
		if (!elf__take(elf, sh.sh_size < elf->size ? sh.sh_size : elf->size))
			return NULL;
		elf->loaded[index / 8] |= (u8)(1 << index % 8);
	}
	return elf_rawdata(scn, NULL);
}

const char *elf__section_name(struct elf *elf, const GElf_Shdr *sh)
{
	size_t strings;
	Elf_Data *data;
	Elf_Scn *scn;

	if (elf_getshdrstrndx(elf->elf, &strings))
		return NULL;
	scn = elf_getscn(elf->elf, strings);
	data = scn ? elf__load(elf, scn) : NULL;
	if (!data || !data->d_buf || sh->sh_name >= data->d_size ||
	    !memchr((const char *)data->d_buf + sh->sh_name, 0, data->d_size - sh->sh_name))
		return NULL;
	return (const char *)data->d_buf + sh->sh_name;
}

const u8 *elf__section_data(struct elf *elf, const char *name, u32 type, u32 *index, struct elf_section *out)
{
	Elf_Scn *scn = NULL;
	const char *have;
	GElf_Shdr sh;
	Elf_Data *data;

	while ((scn = elf_nextscn(elf->elf, scn))) {
		if (elf_ndxscn(scn) <= *index || !gelf_getshdr(scn, &sh))
			continue;
		if (type && sh.sh_type != type)
			continue;
		have = name ? elf__section_name(elf, &sh) : NULL;
		if (name && (!have || strcmp(have, name)))
			continue;
		data = elf__load(elf, scn);
		if (!data || !data->d_buf)
			continue;
		*index = elf_ndxscn(scn);
		out->addr = sh.sh_addr;
		out->link = sh.sh_link;
		out->size = data->d_size;
		return data->d_buf;
	}
	return NULL;
}

bool elf__section_header(struct elf *elf, const char *name, u32 type, GElf_Shdr *out)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf->elf, scn))) {
		const char *have;

		if (!gelf_getshdr(scn, out) || !out->sh_size || out->sh_type == SHT_NOBITS ||
		    (type && out->sh_type != type))
			continue;
		have = name ? elf__section_name(elf, out) : NULL;
		if (!name || (have && !strcmp(have, name)))
			return true;
	}
	return false;
}

bool elf__range_holds(const struct elf *elf, u64 offset, u64 size, const char *text)
{
	/* a buffer that stays in the CPU's cache */
	char buffer[BLOCK];
	size_t len = strlen(text), kept = 0;

	while (size) {
		ssize_t n = elf__read_at(elf, buffer + kept, size < BLOCK - kept ? size : BLOCK - kept, offset);

		if (n <= 0)
			return false;
		if (memmem(buffer, kept + (size_t)n, text, len))
			return true;
		offset += (u64)n;
		size -= (u64)n;
		/* a text may begin in these bytes and end in the next ones */
		n += (ssize_t)kept;
		kept = (size_t)n < len ? (size_t)n : len - 1;
		memmove(buffer, buffer + n - kept, kept);
	}
	return false;
}

/* The segment that loads addr from the file, and the number of its bytes from there on. */
static const GElf_Phdr *segment_of(struct elf *elf, u64 addr, u64 *left)
{
	const GElf_Phdr *p;
	u32 i;

	for (i = 0; i < elf->n_segments; i++) {
		p = &elf->segments[i];
		if (p->p_type != PT_LOAD || addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		if (p->p_offset > elf->size || addr - p->p_vaddr >= elf->size - p->p_offset)
			continue;
		*left = p->p_filesz - (addr - p->p_vaddr);
		if (*left > elf->size - p->p_offset - (addr - p->p_vaddr))
			*left = elf->size - p->p_offset - (addr - p->p_vaddr);
		return p;
	}
	return NULL;
}

int elf__offset(struct elf *elf, u64 addr, u64 *offset)
{
	const GElf_Phdr *p;
	u64 left;
	u32 i;

	p = segment_of(elf, addr, &left);
	if (p) {
		*offset = addr - p->p_vaddr + p->p_offset;
		return 0;
	}
	/* zero-filled data has an address but no offset in the file; its symbols are valid */
	for (i = 0; i < elf->n_segments; i++) {
		p = &elf->segments[i];
		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_memsz) {
			*offset = 0;
			return 0;
		}
	}
	return -ENOENT;
}

bool elf__address_of(struct elf *elf, u64 offset, u64 *addr)
{
	u64 segment, size, first;

	for (u32 i = 0; elf__text(elf, i, &segment, &size); i++) {
		if (elf__offset(elf, segment, &first) || offset < first || offset - first >= size)
			continue;
		*addr = segment + (offset - first);
		return true;
	}
	return false;
}

static const u8 *read_block(struct elf *elf, u64 offset, u64 len)
{
	struct elf_block *b;
	u64 from, to, done;
	ssize_t n;
	u32 i;

	for (i = 0; i < elf->n_blocks; i++) {
		b = &elf->blocks[i];
		if (offset >= b->offset && offset - b->offset <= b->size && len <= b->size - (offset - b->offset))
			return b->data + (offset - b->offset);
	}
	from = offset & ~(u64)(BLOCK - 1);
	to = (offset + len + BLOCK - 1) & ~(u64)(BLOCK - 1);
	if (to > elf->size)
		to = elf->size;
	if (!elf__take(elf, to - from))
		return NULL;
	if (!array__room(elf->blocks, elf->n_blocks)) {
		give_back(elf, to - from);
		return NULL;
	}
	b = &elf->blocks[elf->n_blocks];
	b->offset = from;
	b->size = to - from;
	b->data = malloc(b->size);
	for (done = 0; b->data && done < b->size; done += n) {
		n = elf__read_at(elf, b->data + done, b->size - done, from + done);
		if (n <= 0) {
			free(b->data);
			b->data = NULL;
		}
	}
	if (!b->data) {
		give_back(elf, to - from);
		return NULL;
	}
	elf->n_blocks++;
	return b->data + (offset - from);
}

const u8 *elf__bytes(struct elf *elf, u64 addr, u64 *len)
{
	const GElf_Phdr *p;
	u64 left;

	p = segment_of(elf, addr, &left);
	if (!p || !*len)
		return NULL;
	if (*len > left)
		*len = left;
	if (*len > BYTES_MAX)
		*len = BYTES_MAX;
	return read_block(elf, p->p_offset + (addr - p->p_vaddr), *len);
}

bool elf__text(struct elf *elf, u32 i, u64 *addr, u64 *size)
{
	const GElf_Phdr *p;
	u32 k;

	for (k = 0; k < elf->n_segments; k++) {
		p = &elf->segments[k];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || i--)
			continue;
		*addr = p->p_vaddr;
		*size = p->p_filesz;
		return true;
	}
	return false;
}
