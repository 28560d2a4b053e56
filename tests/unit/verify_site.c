// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sites that a file's own tables allow, in a library of known instructions that the test builds. */
#include "test.h"

#include "attach/attacher.h"
#include "attach/verifier.h"
#include "elf/elf.h"
#include "site/verify_site.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* 'tabled' has an unwind table, 'named' only a symbol, 'hidden', which follows 'named', neither. */
static const char source[] =
	".globl tabled, named, table\n"
	".type tabled, @function; .type named, @function; .type table, @object\n"
	".p2align 6\n"
	"first: .skip 64, 0x90\n"
	"tabled: .cfi_startproc; endbr64; push %rbp; .cfi_adjust_cfa_offset 8\n"
	"movabs $0x1122334455667788, %rax; pop %rbp; .cfi_adjust_cfa_offset -8; ret; .cfi_endproc\n"
	".size tabled, . - tabled; .p2align 4\n"
	"named: xor %eax, %eax; mov $0x11223344, %ecx; ret\n"
	".size named, . - named; .p2align 4\n"
	"hidden: nop; mov $0x55667788, %ecx; ret\n"
	".section .rodata\n"
	"table: .quad 1, 2, 3, 4\n"
	".size table, 32\n";

static int fd = -1;
static u64 tabled, named, table;

static u64 offset_of(struct elf *elf, const char *name)
{
	struct elf_symbol sym = {};

	elf__find_symbol(elf, name, &sym);
	return sym.offset;
}

static bool build(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[256], command[4096], path[300];
	struct elf *elf;

	snprintf(dir, sizeof(dir), "%s/sonde-sites-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return false;
	snprintf(path, sizeof(path), "%s/it.so", dir);
	snprintf(command, sizeof(command), "printf '%%s' '%s' | cc -shared -nostdlib -x assembler -s -o %s -", source,
		 path);
	if (system(command) || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 || elf__open(&elf, fd))
		return false;
	tabled = offset_of(elf, "tabled");
	named = offset_of(elf, "named");
	table = offset_of(elf, "table");
	elf__close(elf);
	unlink(path);
	rmdir(dir);
	return tabled && named && table;
}

static u8 verdict_of(u64 offset, bool returns)
{
	struct site_checker *c = site_checker__new(fd);
	u8 verdict = SITE_VERDICTS;

	if (c)
		site_checker__check(c, &offset, 1, returns, &verdict);
	site_checker__free(c);
	return verdict;
}

TEST(accepts_only_starts_of_instructions)
{
	REQUIRE(build());
	CHECK(verdict_of(tabled, false) == SITE_OK);
	CHECK(verdict_of(tabled + 4, false) == SITE_OK); /* push */
	CHECK(verdict_of(tabled + 5, false) == SITE_OK); /* movabs */
	for (u32 i = 6; i < 15; i++)
		CHECK(verdict_of(tabled + i, false) == SITE_INSIDE);
	CHECK(verdict_of(tabled + 1, false) == SITE_INSIDE);
	CHECK(verdict_of(tabled + 15, false) == SITE_OK); /* pop */
	CHECK(verdict_of(named + 2, false) == SITE_OK);
	CHECK(verdict_of(named + 3, false) == SITE_INSIDE);
}

/* Code that is reachable only from the symbol before it, and unreachable code. */
TEST(decodes_from_known_starts)
{
	REQUIRE(fd >= 0);
	CHECK(verdict_of(named + 16, false) == SITE_OK);
	CHECK(verdict_of(named + 17, false) == SITE_OK);
	CHECK(verdict_of(named + 18, false) == SITE_INSIDE);
	CHECK(verdict_of(tabled - 32, false) == SITE_NO_START);
}

TEST(accepts_only_code)
{
	REQUIRE(fd >= 0);
	CHECK(verdict_of(table, false) == SITE_NO_CODE);
	CHECK(verdict_of(0, false) == SITE_NO_CODE);
	CHECK(verdict_of(1ULL << 40, false) == SITE_NO_CODE);
	CHECK(verdict_of(~0ULL, false) == SITE_NO_CODE);
}

/* The kernel replaces the value on top of the stack. */
TEST(accepts_returns_with_the_return_address_on_top)
{
	REQUIRE(fd >= 0);
	CHECK(verdict_of(tabled, true) == SITE_OK);
	CHECK(verdict_of(tabled + 4, true) == SITE_OK);
	CHECK(verdict_of(tabled + 5, true) == SITE_NO_RETURN);
	CHECK(verdict_of(tabled + 16, true) == SITE_OK); /* the return itself */
	CHECK(verdict_of(named, true) == SITE_OK);
	CHECK(verdict_of(named + 2, true) == SITE_OK);
	CHECK(verdict_of(named + 16, true) == SITE_NO_RETURN); /* after another return */
}

/* The child process that verifies sites for the attacher. */
TEST(answers_from_a_child)
{
	struct verifier *v = verifier__new();
	u64 offsets[3] = { tabled, tabled + 7, named };
	u8 verdicts[3];
	int text = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int file;

	signal(SIGCHLD, SIG_IGN);
	REQUIRE(fd >= 0 && v);
	CHECK(!verifier__check(v, fd, offsets, 3, false, verdicts, &file));
	CHECK(verdicts[0] == SITE_OK && verdicts[1] == SITE_INSIDE && verdicts[2] == SITE_OK);
	offsets[1] = tabled + 4;
	CHECK(verifier__check(v, fd, offsets, 3, true, verdicts, &file));
	CHECK(file >= 0 && file != fd);
	/* not an ELF file, not a file */
	CHECK(!verifier__check(v, text, offsets, 3, false, verdicts, &file) && verdicts[0] == SITE_UNREADABLE);
	CHECK(!verifier__check(v, zero, offsets, 3, false, verdicts, &file) && verdicts[2] == SITE_UNREADABLE);
	CHECK(!verifier__check(v, -1, offsets, 3, false, verdicts, &file));
	CHECK(verifier__check(v, fd, offsets, 3, false, verdicts, &file));
	verifier__free(v);
	close(text);
	close(zero);
	signal(SIGCHLD, SIG_DFL);
}

TEST(knows_real_libraries)
{
	int libc = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);
	struct elf_symbol sym = {};
	struct elf *elf = NULL;
	u64 offsets[2];
	u8 verdicts[2];
	struct site_checker *c = libc < 0 ? NULL : site_checker__new(libc);

	if (!c)
		SKIP("no libc.so.6 where Debian has it");
	REQUIRE(!elf__open(&elf, libc) && !elf__find_symbol(elf, "pthread_cond_timedwait", &sym));
	offsets[0] = sym.offset;
	offsets[1] = sym.offset + 1;
	site_checker__check(c, offsets, 2, true, verdicts);
	CHECK(verdicts[0] == SITE_OK && verdicts[1] != SITE_OK);
	site_checker__free(c);
	elf__close(elf);
	close(libc);
}

TEST(has_a_text_for_each_verdict)
{
	for (u32 i = 0; i <= SITE_VERDICTS; i++)
		CHECK(*site_verdict__text(i));
}

TEST_MAIN()
