// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A parser child answers the same as the parser itself, and a crash affects only its file. */
#include "elf/foreign.h"
#include "sandbox/message.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int open_own(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

int exported_here(void);
int exported_here(void)
{
	return 1;
}

TEST(answers_equal_the_parsers)
{
	static const char *const names[] = { "exported_here", "main", "no_such_function" };
	struct foreign *f = foreign__new(NULL);
	struct elf_symbol found[3], symbol;
	struct elf_unwind theirs, own;
	struct foreign_needed *needed = calloc(1, sizeof(*needed));
	struct foreign_file file;
	struct elf *elf;
	u64 addr, size;
	int fd = open_own();

	REQUIRE(f && needed && fd >= 0 && !elf__open(&elf, fd));
	REQUIRE(!foreign_file__open(&file, f, fd));
	CHECK(file.n_texts && elf__text(elf, 0, &addr, &size));
	CHECK(file.texts[0].addr == addr && file.texts[0].size == size);
	CHECK(!foreign_file__find_symbols(&file, names, 3, found));
	CHECK(found[0].name && found[1].name && !found[2].name);
	CHECK(!elf__find_symbol(elf, "main", &symbol) && symbol.addr == found[1].addr && symbol.size == found[1].size);
	CHECK(!foreign_file__unwind(&file, symbol.addr + 8, &theirs) && !elf__unwind(elf, symbol.addr + 8, &own));
	CHECK(theirs.cfa == own.cfa && theirs.saved == own.saved && theirs.by_frame_pointer == own.by_frame_pointer);
	CHECK(foreign_file__unwind(&file, 1, &theirs) == elf__unwind(elf, 1, &own));
	CHECK(!foreign_file__is_exported(&file, 1));
	CHECK(!foreign_file__needed(&file, needed) && needed->n > 3);
	elf__close(elf);
	foreign__free(f);
	free(needed);
	close(fd);
}

TEST(other_files_than_elf_are_refused)
{
	struct foreign *f = foreign__new(NULL);
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct foreign_file file;

	REQUIRE(f && fd >= 0);
	CHECK(foreign_file__open(&file, f, fd) == -ENOEXEC && file.fd == -1);
	CHECK(!foreign_file__is_exported(&file, 0));
	foreign__free(f);
	close(fd);
}

TEST(a_crash_gives_up_the_file)
{
	struct foreign *f = foreign__new(NULL);
	struct foreign_file file, other;
	int fd = open_own();

	REQUIRE(f && fd >= 0);
	setenv("SONDE_TEST", "foreign-crash", 1);
	CHECK(foreign_file__open(&file, f, fd) < 0 && file.fd == -1);
	unsetenv("SONDE_TEST");
	/* the next file has another child */
	CHECK(!foreign_file__open(&other, f, fd));
	CHECK(!foreign_file__is_exported(&file, 0));
	foreign__free(f);
	close(fd);
}

TEST(a_child_with_too_many_requests_is_replaced)
{
	static const char *const names[] = { "main" };
	struct foreign *f = foreign__new(NULL);
	struct foreign_file file;
	struct elf_symbol found;
	int fd = open_own();

	REQUIRE(f && fd >= 0);
	/* each child ends at its second request */
	setenv("SONDE_TEST", "foreign-crash-later", 1);
	CHECK(!foreign_file__open(&file, f, fd));
	CHECK(!foreign_file__find_symbols(&file, names, 1, &found) && found.name);
	CHECK(!foreign_file__find_symbols(&file, names, 1, &found) && found.name);
	unsetenv("SONDE_TEST");
	foreign__free(f);
	close(fd);
}

TEST(requests_share_a_deadline)
{
	static const char *const names[] = { "main" };
	u64 until = 0, begun;
	struct foreign *f = foreign__new(&until);
	struct foreign_file file;
	struct elf_symbol found;
	int fd = open_own();

	REQUIRE(f && fd >= 0);
	CHECK(!foreign_file__open(&file, f, fd));
	setenv("SONDE_TEST", "foreign-hang", 1);
	/* this child was forked without the test switch; the next one has it */
	foreign__free(f);
	f = foreign__new(&until);
	file.child = f;
	begun = message__now();
	until = begun + 100;
	CHECK(foreign_file__find_symbols(&file, names, 1, &found) == -ETIMEDOUT);
	CHECK(message__now() >= until);
	/* after the deadline no request is sent, and the file is not marked as bad */
	for (int i = 0; i < 10; i++)
		CHECK(foreign_file__find_symbols(&file, names, 1, &found) == -ETIMEDOUT && file.fd == fd);
	unsetenv("SONDE_TEST");
	until = 0;
	CHECK(!foreign_file__find_symbols(&file, names, 1, &found) && found.name);
	foreign__free(f);
	close(fd);
}

TEST(a_file_that_gets_no_answer_twice_is_given_up)
{
	u64 until = 0;
	struct foreign *f = foreign__new(&until);
	struct elf_unwind unwind;
	struct foreign_file file;
	int fd = open_own();

	REQUIRE(f && fd >= 0);
	setenv("SONDE_TEST", "foreign-hang", 1);
	until = message__now() + 50;
	CHECK(foreign_file__open(&file, f, fd) == -ETIMEDOUT && file.fd == fd);
	until = message__now() + 50;
	CHECK(foreign_file__unwind(&file, 1, &unwind) == -ETIMEDOUT && file.fd == -1);
	unsetenv("SONDE_TEST");
	until = 0;
	/* not -ENOEXEC, which would mean that it is not an ELF file */
	CHECK(foreign_file__unwind(&file, 1, &unwind) == -ETIMEDOUT);
	foreign__free(f);
	close(fd);
}

TEST_MAIN()
