// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/semaphores.h"

#include <elf.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/shim.h"

/* Section headers that are read; a CPython has 40 */
#define SECTIONS_MAX 1024

static const char usdt[] = ".probes"; /* sys/sdt.h, systemtap */

static bool read_at(int fd, void *to, size_t size, u64 offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool in_shim(int fd, u64 offset)
{
	char text[sizeof(SHIM_SEMAPHORES) - 1];

	return read_at(fd, text, sizeof(text), offset & ~4095ULL) && !memcmp(text, SHIM_SEMAPHORES, sizeof(text)) &&
	       offset % 4096 >= sizeof(text);
}

/* The offset of the section in the file; false: there is none. Reads single numbers and caches nothing. */
static bool find_usdt(int fd, u64 *from, u64 *size)
{
	char name[sizeof(usdt)];
	Elf64_Shdr names, s;
	Elf64_Ehdr head;

	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(s) || head.e_shnum > SECTIONS_MAX ||
	    head.e_shstrndx >= head.e_shnum || head.e_shoff > INT64_MAX / 2 ||
	    !read_at(fd, &names, sizeof(names), head.e_shoff + head.e_shstrndx * sizeof(s)) ||
	    names.sh_offset > INT64_MAX / 2)
		return false;
	for (u32 i = 0; i < head.e_shnum; i++) {
		if (!read_at(fd, &s, sizeof(s), head.e_shoff + i * sizeof(s)))
			return false;
		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_WRITE) ||
		    !read_at(fd, name, sizeof(name), names.sh_offset + s.sh_name) || memcmp(name, usdt, sizeof(usdt)))
			continue;
		*from = s.sh_offset;
		*size = s.sh_size;
		return true;
	}
	return false;
}

bool semaphores__are(int fd, const u64 *offsets, u32 n)
{
	u64 from = 0, size = 0;
	bool has_usdt = find_usdt(fd, &from, &size) && size >= sizeof(u16);

	for (u32 i = 0; i < n; i++)
		if (offsets[i] && !in_shim(fd, offsets[i]) &&
		    !(has_usdt && offsets[i] >= from && offsets[i] - from <= size - sizeof(u16)))
			return false;
	return true;
}

void semaphores__wake(int fd)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED)
		return;
	/* only the kernel reads the page: one that is missing is no fault of this process */
	syscall(SYS_futex, page, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	munmap(page, 4096);
}
