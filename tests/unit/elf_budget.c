// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that claim to need more memory than allowed: sparse files, which any user can create in any number. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf.h"
#include "test.h"

#define MIB   (1ULL << 20)
#define FILES 4

/* A file whose dynamic symbol table and strings are this many bytes of zeros each. */
static int make_file(u64 bytes)
{
	Elf64_Shdr sections[4] = {
		{},
		{ .sh_type = SHT_DYNSYM,
		  .sh_offset = 4096,
		  .sh_size = bytes - bytes % sizeof(Elf64_Sym),
		  .sh_link = 2,
		  .sh_name = 1 },
		{ .sh_type = SHT_STRTAB, .sh_offset = 4096 + bytes, .sh_size = bytes },
		{ .sh_type = SHT_STRTAB, .sh_offset = 4096 + bytes, .sh_size = bytes },
	};
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096 + 2 * bytes };
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(segment),
		.e_phnum = 1,
		.e_shoff = 1024,
		.e_shentsize = sizeof(*sections),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	int fd = memfd_create("sparse", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)(4096 + 2 * bytes)) || pwrite(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    pwrite(fd, &segment, sizeof(segment), sizeof(eh)) != sizeof(segment) ||
	    pwrite(fd, sections, sizeof(sections), 1024) != sizeof(sections))
		return -1;
	return fd;
}

static int on_symbol(const struct elf_symbol *sym, void *arg)
{
	return 0;
}

TEST(gives_up_a_file_that_is_too_large)
{
	int fd = make_file(1024 * MIB);
	struct elf_symbol sym;
	struct elf *elf;

	REQUIRE(fd >= 0 && !elf__open(&elf, fd));
	CHECK(!elf__over_budget(elf));
	elf__each_symbol(elf, on_symbol, NULL);
	CHECK(elf__find_symbol(elf, "main", &sym) == -ENOENT);
	CHECK(!elf__section_holds(elf, ".text", "x"));
	CHECK(elf__over_budget(elf));
	CHECK(elf__held(elf) < 64 * MIB && elf__all_held() == elf__held(elf));
	elf__close(elf);
	CHECK(!elf__all_held());
	close(fd);
}

TEST(bounds_the_sum_of_files)
{
	struct elf *elf[FILES];
	int fd[FILES];
	u32 refused = 0;

	for (u32 i = 0; i < FILES; i++) {
		fd[i] = make_file(64 * MIB);
		REQUIRE(fd[i] >= 0 && !elf__open(&elf[i], fd[i]));
		elf__each_symbol(elf[i], on_symbol, NULL);
		refused += elf__over_budget(elf[i]);
		CHECK(elf__all_held() <= 448 * MIB);
	}
	CHECK(refused && refused < FILES);
	/* memory that one file releases is available for the next */
	elf__close(elf[0]);
	REQUIRE(!elf__open(&elf[0], fd[0]));
	CHECK(!elf__held(elf[0]));
	elf__each_symbol(elf[0], on_symbol, NULL);
	CHECK(elf__held(elf[0]) >= 64 * MIB && !elf__over_budget(elf[0]));
	for (u32 i = 0; i < FILES; i++) {
		elf__close(elf[i]);
		close(fd[i]);
	}
	CHECK(!elf__all_held());
}

/* libelf allocates 200 bytes for each section that a header claims and the file has room for. */
TEST(refuses_billions_of_sections)
{
	Elf64_Shdr first = { .sh_size = 1ULL << 28 };
	int fd = make_file(MIB);
	struct elf *elf = NULL;
	Elf64_Ehdr eh;

	REQUIRE(fd >= 0 && pread(fd, &eh, sizeof(eh), 0) == sizeof(eh));
	eh.e_shnum = 0;
	REQUIRE(pwrite(fd, &eh, sizeof(eh), 0) == sizeof(eh) &&
		pwrite(fd, &first, sizeof(first), 1024) == sizeof(first));
	REQUIRE(!ftruncate(fd, 1LL << 40));
	CHECK(elf__open(&elf, fd) == -ENOEXEC && !elf);
	close(fd);
}

TEST_MAIN()
