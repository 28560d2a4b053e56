// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Members of structs in this program's own debug information, compared with offsetof; lines, compared with __LINE__;
 * damaged files; the parser child.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/dwarf.h"
#include "elf/dwarf_lines.h"
#include "test.h"

struct dwarf_declared;

struct dwarf_example {
	char pad[70003];
	int number;
	struct {
		int rank; /* another one */
	} inner;
	unsigned long long hash;
	short rank;
};

struct dwarf_declared *dwarf_unused;
struct dwarf_example dwarf_example;

static const struct dwarf_member expected[] = { { "number", 4, 0 }, { "hash", 8, 0 }, { "rank", 2, 0 } };
#define N (sizeof(expected) / sizeof(expected[0]))

static void check_offsets(const struct dwarf_member *m)
{
	CHECK(m[0].offset == offsetof(struct dwarf_example, number));
	CHECK(m[1].offset == offsetof(struct dwarf_example, hash));
	CHECK(m[2].offset == offsetof(struct dwarf_example, rank));
}

static int self(void)
{
	/* used, as unused ones are not in the debug information */
	dwarf_example.number = !dwarf_unused;
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static int ask(int fd, const char *type, const char *member, u64 size)
{
	struct dwarf_member m = { member, size, 0 };

	return dwarf__members(fd, type, &m, 1);
}

static int in_child(int fd, const char *type, struct dwarf_member *m)
{
	struct dwarf_job job = {};
	int err;

	memcpy(m, expected, sizeof(expected));
	err = dwarf_job__start(&job, NULL, fd, type, m, N);
	/* the answer may take long on a busy machine */
	return err ? err : dwarf_job__poll(&job, 100000, m, N);
}

/* Copies the first `size` bytes, and from `from` on overwrites about one of `every` (0: none). */
static int damage(int original, off_t from, off_t size, unsigned int every)
{
	char path[] = "/tmp/sonde-dwarf-XXXXXX";
	char *data = malloc(size);
	int fd = mkstemp(path);
	off_t i;

	if (fd < 0 || !data || pread(original, data, size, 0) != size)
		abort();
	unlink(path);
	for (i = from; every && i < size; i += 1 + rand() % every)
		data[i] = (char)rand();
	if (write(fd, data, size) != size)
		abort();
	free(data);
	return fd;
}

TEST(offsets_equal_the_compilers)
{
	struct dwarf_member m[N];
	int fd = self();

	memcpy(m, expected, sizeof(expected));
	REQUIRE(!dwarf__members(fd, "dwarf_example", m, N));
	check_offsets(m);
	close(fd);
}

TEST(a_child_gives_the_same_result)
{
	struct dwarf_member m[N];
	int fd = self();

	REQUIRE(!in_child(fd, "dwarf_example", m));
	check_offsets(m);
	close(fd);
}

TEST(reports_errors)
{
	int fd = self(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(ask(fd, "dwarf_nowhere", "rank", 2) == -ENOENT);
	CHECK(ask(fd, "dwarf_declared", "rank", 2) == -ENOENT);
	CHECK(ask(fd, "dwarf_example", "colour", 2) == -ENOKEY);
	CHECK(ask(fd, "dwarf_example", "rank", 4) == -EPROTO);
	CHECK(ask(null, "dwarf_example", "rank", 2) == -ENODATA);
	close(fd);
	close(null);
}

/* Returns the address of its call. */
static __attribute__((noinline)) u64 here(void)
{
	asm volatile(""); /* or the compiler calls it only once */
	return (u64)(uintptr_t)__builtin_return_address(0) - 1;
}

static u32 in_inlined_line;

static __attribute__((always_inline)) inline u64 inlined(void)
{
	in_inlined_line = __LINE__ + 1;
	return here() + !dwarf_unused - 1;
}

/* The file's address of one in this program */
static u64 in_file(u64 address)
{
	Dl_info info;

	return dladdr(&dwarf_example, &info) ? address - (u64)(uintptr_t)info.dli_fbase : 0;
}

TEST(lines_equal_the_compilers)
{
	struct dwarf_lines *lines;
	struct dwarf_place at;
	int fd = self(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	u64 called = here(), called_line = __LINE__, in_inlined = inlined(), inlined_line = __LINE__;

	REQUIRE(!dwarf_lines__new(&lines, fd));
	dwarf_lines__at(lines, in_file(called), &at);
	CHECK(at.line.line == called_line && strstr(at.line.file, "tests/unit/dwarf.c") && !at.n_inlined);
	dwarf_lines__at(lines, in_file(in_inlined), &at);
	CHECK(at.line.line == inlined_line && strstr(at.line.file, "tests/unit/dwarf.c"));
	REQUIRE(at.n_inlined == 1);
	CHECK(!strcmp(at.inlined[0].name, "inlined") && at.inlined[0].line.line == in_inlined_line);
	dwarf_lines__at(lines, ~0ULL, &at);
	CHECK(!at.line.line && !*at.line.file && !at.n_inlined);
	dwarf_lines__free(lines);
	CHECK(dwarf_lines__new(&lines, null) == -ENODATA && !lines);
	close(fd);
	close(null);
}

/* Damaged files always get an answer, even if libdw crashes or hangs. */
TEST(damaged_files)
{
	struct dwarf_member m[N];
	int fd = self(), bad, err;
	struct stat st;
	u32 i;

	REQUIRE(!fstat(fd, &st));
	srand(1);
	for (i = 0; i < 64; i++) {
		/* most of an unstripped program is debug information */
		bad = damage(fd, st.st_size / 3, st.st_size, 1u << (4 + i % 16));
		err = in_child(bad, "dwarf_example", m);
		CHECK(err <= 0 && err != -EAGAIN);
		close(bad);
	}
	for (i = 1; i < 16; i++) {
		bad = damage(fd, 0, st.st_size / 16 * i, 0);
		err = in_child(bad, "dwarf_example", m);
		CHECK(err < 0 && err != -EAGAIN);
		close(bad);
	}
	close(fd);
}

TEST_MAIN()
