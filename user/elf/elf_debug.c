// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Symbols of a stripped file: .gnu_debugdata (an xz-compressed ELF file that contains only .symtab) and separate
 * debug files. Formats: GDB's manual, "MiniDebugInfo" and "Separate Debug Files".
 */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_private.h"

#define DEBUGDATA_MAX (64ULL << 20) /* unpacked; the largest known ones have some MiB */
#define LZMA_MEMORY   (80ULL << 20) /* xz -9 needs 65 MiB */
#define CRC_MAX	      (4ULL << 30)
#define TEXT_MAX      (256ULL << 20)

struct unpacked {
	u8 *data;
	u64 size, capacity;
};

static int append(struct unpacked *u, const u8 *data, size_t len)
{
	u64 room = u->capacity * 2 + (1 << 16);
	u8 *bigger;

	if (u->size + len > DEBUGDATA_MAX)
		return -EFBIG;
	if (u->size + len > u->capacity) {
		bigger = realloc(u->data, room);
		if (!bigger)
			return -ENOMEM;
		u->data = bigger;
		u->capacity = room;
	}
	memcpy(u->data + u->size, data, len);
	u->size += len;
	return 0;
}

/* The size that the header claims for the unpacked data is not trusted: the output is counted. */
static int unpack(const u8 *data, u64 size, struct unpacked *u)
{
	lzma_stream lz = LZMA_STREAM_INIT;
	lzma_ret ret;
	u8 out[65536];
	int err = 0;

	if (lzma_stream_decoder(&lz, LZMA_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	lz.next_in = data;
	lz.avail_in = size;
	do {
		lz.next_out = out;
		lz.avail_out = sizeof(out);
		ret = lzma_code(&lz, LZMA_FINISH);
		if (ret != LZMA_OK && ret != LZMA_STREAM_END)
			err = ret == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
		else
			err = append(u, out, sizeof(out) - lz.avail_out);
	} while (!err && ret == LZMA_OK);
	lzma_end(&lz);
	return err;
}

static int add(struct elf *elf, u32 place, int fd)
{
	int err = elf->debug[place] ? -EEXIST : elf__open(&elf->debug[place], fd);

	if (err)
		close(fd);
	else
		elf->debug[place]->own_fd = true;
	return err;
}

int elf__add_debugdata(struct elf *elf)
{
	struct elf_section sec;
	u32 index = 0;
	const u8 *data = elf__section_data(elf, ".gnu_debugdata", 0, &index, &sec);
	struct unpacked u = {};
	int err;

	if (!data || elf->debug[0])
		return -ENOENT;
	err = unpack(data, sec.size, &u);
	if (!err && (!u.size || !elf__take(elf, u.size)))
		err = u.size ? -EFBIG : -ENOEXEC;
	if (err) {
		free(u.data);
		return err;
	}
	return elf__open_image(&elf->debug[0], u.data, u.size);
}

static int checksum(int fd, u32 *crc)
{
	u64 pos = 0;
	u8 buf[65536];
	ssize_t n;

	*crc = 0;
	while (pos < CRC_MAX) {
		n = pread(fd, buf, sizeof(buf), pos);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		*crc = lzma_crc32(buf, n, *crc);
		pos += n;
	}
	return -EFBIG;
}

static int belongs(struct elf *elf, struct elf *debug, const u32 *crc)
{
	u32 sum;
	int err;

	if (*elf__build_id(elf))
		return strcmp(elf__build_id(elf), elf__build_id(debug)) ? -ESTALE : 0;
	if (!crc)
		return -ESTALE;
	err = checksum(debug->fd, &sum);
	return err ? err : sum != *crc ? -ESTALE : 0;
}

int elf__add_debug(struct elf *elf, int fd, const u32 *crc)
{
	int err = add(elf, 1, fd);

	if (err)
		return err;
	err = belongs(elf, elf->debug[1], crc);
	if (err) {
		elf__close(elf->debug[1]);
		elf->debug[1] = NULL;
	}
	return err;
}

int elf__debuglink(struct elf *elf, char *name, size_t len, u32 *crc)
{
	struct elf_section sec;
	u32 index = 0;
	const u8 *data = elf__section_data(elf, ".gnu_debuglink", 0, &index, &sec);
	size_t n = data ? strnlen((const char *)data, sec.size) : 0;
	size_t sum = (n + 4) & ~(size_t)3;

	/* the name is used beside the file: it must not contain a path */
	if (!n || n >= len || sum + sizeof(*crc) > sec.size || memchr(data, '/', n))
		return -ENOENT;
	memcpy(name, data, n + 1);
	memcpy(crc, data + sum, sizeof(*crc));
	return strcmp(name, ".") && strcmp(name, "..") ? 0 : -ENOENT;
}

int elf__find_text(struct elf *elf, const char *section, const char *text, u64 *addr)
{
	struct elf_section sec;
	u32 index = 0;
	const u8 *data = elf__section_data(elf, section, 0, &index, &sec), *at;

	at = data ? memmem(data, sec.size < TEXT_MAX ? sec.size : TEXT_MAX, text, strlen(text)) : NULL;
	if (!at)
		return -ENOENT;
	*addr = sec.addr + (u64)(at - data);
	return 0;
}

bool elf__section_holds(struct elf *elf, const char *section, const char *text)
{
	GElf_Shdr sh;

	return elf__section_header(elf, section, 0, &sh) &&
	       (!*text || elf__range_holds(elf, sh.sh_offset, sh.sh_size < TEXT_MAX ? sh.sh_size : TEXT_MAX, text));
}

/* Calls fn with the strings of the dynamic section's entries with this tag, until fn returns true. */
static bool each_dynamic(struct elf *elf, s64 tag, bool (*fn)(const char *text, void *arg), void *arg)
{
	struct elf_section sec;
	const char *names;
	Elf64_Dyn dyn;
	u32 index = 0;
	const u8 *data = elf__section_data(elf, NULL, SHT_DYNAMIC, &index, &sec);
	u64 size;

	names = data ? elf__string_table(elf, sec.link, &size) : NULL;
	for (u64 i = 0; names && (i + 1) * sizeof(dyn) <= sec.size; i++) {
		memcpy(&dyn, data + i * sizeof(dyn), sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == tag && dyn.d_un.d_val < size && fn(names + dyn.d_un.d_val, arg))
			return true;
	}
	return false;
}

static bool begins_with(const char *text, void *arg)
{
	return !strncmp(text, arg, strlen(arg));
}

bool elf__needs(struct elf *elf, const char *library)
{
	return each_dynamic(elf, DT_NEEDED, begins_with, (void *)library);
}

static bool store_text(const char *text, void *arg)
{
	*(const char **)arg = text;
	return true;
}

const char *elf__soname(struct elf *elf)
{
	if (!elf->soname && !each_dynamic(elf, DT_SONAME, store_text, &elf->soname))
		elf->soname = "";
	return elf->soname;
}

bool elf__is_program(const struct elf *elf)
{
	for (u32 i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].p_type == PT_INTERP)
			return true;
	return false;
}
