// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Arguments of USDT probes in ELF notes, and forged notes. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/usdt.h"
#include "test.h"

static struct usdt_arg parsed(const char *text)
{
	struct usdt_arg a;

	usdt__parse_arg(text, &a);
	return a;
}

TEST(registers)
{
	struct usdt_arg a = parsed("8@%rax");

	CHECK(a.size == 8 && !a.is_signed && !a.memory && a.reg == 0);
	a = parsed("-4@%edx 8@%rax");
	CHECK(a.size == 4 && a.is_signed && !a.memory && a.reg == 2);
	a = parsed("-8@%r12");
	CHECK(a.size == 8 && a.is_signed && a.reg == 12);
	CHECK(parsed("1@%sil").reg == 6 && parsed("4@%r15d").reg == 15 && parsed("2@%bp").reg == 5);
}

TEST(memory)
{
	struct usdt_arg a = parsed("-4@112(%rsp)");

	CHECK(a.size == 4 && a.memory && a.reg == 4 && a.displacement == 112);
	a = parsed("-4@-228(%rbp) 8@%rax");
	CHECK(a.size == 4 && a.memory && a.reg == 5 && a.displacement == -228);
	a = parsed("8@(%rbx)");
	CHECK(a.size == 8 && a.memory && a.reg == 3 && !a.displacement);
}

TEST(unknown_arguments)
{
	static const char *const texts[] = {
		"",
		"8",
		"8@",
		"8@$17",
		"3@%rax",
		"8@%rip",
		"8@foo(%rip)",
		"8@%raxx",
		"8@8(%rax",
		"8@8(%rax,%rbx,8)",
		"8@99999(%rax)",
		"8@-40000(%rsp)",
		"@%rax",
		"8@%rax,",
		"8@16",
		"8@4%rax",
		"-0@%rax",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK(!parsed(texts[i]).size);
		if (parsed(texts[i]).size)
			printf("# %s\n", texts[i]);
	}
}

/* A file with one segment at address 0x1000, whose .note.stapsdt has these bytes. */
static struct elf *elf_with(const void *note, size_t size)
{
	static const char names[] = "\0.note.stapsdt\0.shstrtab";
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
		Elf64_Shdr sh[3];
		char names[sizeof(names)];
		char note[1024];
	} file = { 0 };
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct elf *elf = NULL;

	memcpy(file.eh.e_ident, ELFMAG, SELFMAG);
	file.eh.e_ident[EI_CLASS] = ELFCLASS64;
	file.eh.e_ident[EI_DATA] = ELFDATA2LSB;
	file.eh.e_ident[EI_VERSION] = EV_CURRENT;
	file.eh.e_type = ET_DYN;
	file.eh.e_machine = EM_X86_64;
	file.eh.e_version = EV_CURRENT;
	file.eh.e_ehsize = sizeof(file.eh);
	file.eh.e_phoff = (char *)&file.ph - (char *)&file;
	file.eh.e_phentsize = sizeof(file.ph);
	file.eh.e_phnum = 1;
	file.eh.e_shoff = (char *)file.sh - (char *)&file;
	file.eh.e_shentsize = sizeof(file.sh[0]);
	file.eh.e_shnum = 3;
	file.eh.e_shstrndx = 2;
	file.ph = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_vaddr = 0x1000,
				.p_filesz = sizeof(file),
				.p_memsz = sizeof(file),
				.p_align = 0x1000 };
	file.sh[1] = (Elf64_Shdr){ .sh_name = 1,
				   .sh_type = SHT_NOTE,
				   .sh_offset = (u64)(file.note - (char *)&file),
				   .sh_size = size,
				   .sh_addralign = 4 };
	file.sh[2] = (Elf64_Shdr){ .sh_name = 15,
				   .sh_type = SHT_STRTAB,
				   .sh_offset = (u64)(file.names - (char *)&file),
				   .sh_size = sizeof(names),
				   .sh_addralign = 1 };
	memcpy(file.names, names, sizeof(names));
	memcpy(file.note, note, size < sizeof(file.note) ? size : sizeof(file.note));
	if (write(fd, &file, sizeof(file)) != (ssize_t)sizeof(file) || elf__open(&elf, fd))
		return NULL;
	return elf;
}

/* Writes a note that claims desc_size. Returns its length. */
static size_t put_note(char *to, u32 desc_size, u64 address, u64 semaphore, const char *texts, size_t texts_size)
{
	u32 head[3] = { 8, desc_size, 3 };
	u64 words[3] = { address, 0, semaphore };

	memcpy(to, head, 12);
	memcpy(to + 12, "stapsdt", 8);
	memcpy(to + 20, words, 24);
	memcpy(to + 44, texts, texts_size);
	return (44 + texts_size + 3) / 4 * 4;
}

struct got {
	u32 n;
	struct usdt last;
	char name[32];
};

static int take(const struct usdt *probe, void *arg)
{
	struct got *g = arg;

	g->n++;
	g->last = *probe;
	snprintf(g->name, sizeof(g->name), "%s", probe->name);
	return 0;
}

static struct got read_notes(const char *notes, size_t size)
{
	struct elf *elf = elf_with(notes, size);
	struct got g = {};

	if (elf)
		usdt__each(elf, "python", take, &g);
	else
		g.n = 99;
	elf__close(elf);
	return g;
}

#define TEXTS "python\0gc__done\0-8@%r13"

TEST(notes)
{
	char notes[512] = {};
	size_t first = put_note(notes, 24 + sizeof(TEXTS), 0x1010, 0x1020, TEXTS, sizeof(TEXTS)), n = first;
	struct got g = read_notes(notes, n);

	CHECK(g.n == 1 && !strcmp(g.name, "gc__done") && g.last.offset == 0x10 && g.last.semaphore == 0x20);
	CHECK(g.last.args[0].reg == 13 && g.last.args[0].size == 8 && !g.last.args[1].size);
	/* a note of another provider, and one without a semaphore */
	n += put_note(notes + n, 24 + 14, 0x1010, 0, "pythia\0gc__x\0", 14);
	n += put_note(notes + n, 24 + sizeof(TEXTS), 0x1012, 0, TEXTS, sizeof(TEXTS));
	g = read_notes(notes, n);
	CHECK(g.n == 2 && g.last.offset == 0x12 && !g.last.semaphore);
}

TEST(forged_notes)
{
	static const u32 sizes[] = { 0, 23, 24, 30, 33, 0x7ffffff0, 0xfffffffd, 0xffffffff };
	char notes[512] = {};
	size_t n;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n = put_note(notes, sizes[i], 0x1010, 0, TEXTS, sizeof(TEXTS));
		CHECK(!read_notes(notes, n).n);
	}
	/* outside the file's segments: the probe site, the semaphore */
	n = put_note(notes, 24 + sizeof(TEXTS), 0xfff, 0, TEXTS, sizeof(TEXTS));
	CHECK(!read_notes(notes, n).n);
	n = put_note(notes, 24 + sizeof(TEXTS), 0x1010, 1ULL << 63, TEXTS, sizeof(TEXTS));
	CHECK(!read_notes(notes, n).n);
	/* unterminated texts */
	memset(notes, 'x', sizeof(notes));
	n = put_note(notes, 24 + 16, 0x1010, 0, "python\0gc__donex", 16);
	CHECK(!read_notes(notes, n).n);
	/* cut at any offset */
	for (n = 0; n < 12 + 8 + 24 + sizeof(TEXTS); n++) {
		put_note(notes, 24 + sizeof(TEXTS), 0x1010, 0, TEXTS, sizeof(TEXTS));
		CHECK(!read_notes(notes, n).n);
	}
}

TEST_MAIN()
