// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The checks that `sonde inject` makes before it changes a process, tried on this one. */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/check.h"
#include "inject/safe_point.h"
#include "inject/seccomp.h"
#include "util/array.h"

TEST(functions_are_found_where_they_are)
{
	struct space s = SPACE_NONE;
	struct code *libc;

	REQUIRE(!space__read(&s, (u32)getpid()));
	libc = space__library(&s, "libc.so.6");
	REQUIRE(libc);
	CHECK(!strcmp(code__name(libc), "libc.so.6"));
	/* after the sanitizer's wrapper */
	CHECK(code__function(&s, libc, "getppid") == (u64)(uintptr_t)dlsym(RTLD_NEXT, "getppid"));
	CHECK(!code__function(&s, libc, "no_such_function"));
	/* a variable is not a function */
	CHECK(!code__function(&s, libc, "environ"));
	CHECK(space__at(&s, (u64)(uintptr_t)dlsym(RTLD_NEXT, "getppid")) == libc);
	CHECK(!space__at(&s, 0x5d));
	space__free(&s);
}

TEST(memory_is_read_or_not)
{
	struct space s = SPACE_NONE;
	u64 value = 4711, copy = 0;

	s.pid = (u32)getpid();
	CHECK(!space__write(&s, (u64)(uintptr_t)&value, &copy, sizeof(copy)));
	CHECK(space__copy(&s, (u64)(uintptr_t)&value, &copy, sizeof(copy)) && copy == 4711);
	space__open(&s, s.pid);
	copy = 0;

	CHECK(space__copy(&s, (u64)(uintptr_t)&value, &copy, sizeof(copy)) && copy == 4711);
	CHECK(!space__copy(&s, 0x5d, &copy, sizeof(copy)));
	copy = 4712;
	CHECK(space__write(&s, (u64)(uintptr_t)&value, &copy, sizeof(copy)) && value == 4712);
	CHECK(!space__write(&s, 0x5d, &copy, sizeof(copy)));
	space__free(&s);
}

static int count(const char *version, void *arg)
{
	*(int *)arg += !strncmp(version, "GLIBC_", 6);
	return 0;
}

TEST(versions_of_symbols)
{
	struct space s = SPACE_NONE;
	struct code *libc, *own;
	struct elf *elf;
	int n = 0;

	REQUIRE(!space__read(&s, (u32)getpid()));
	libc = space__library(&s, "libc.so.6");
	own = space__at(&s, (u64)(uintptr_t)count);
	REQUIRE(libc && own && code__open(&s, libc) && code__open(&s, own));
	CHECK(foreign_file__defines_version(&libc->file, "GLIBC_2.2.5") ||
	      foreign_file__defines_version(&libc->file, "GLIBC_2.17"));
	CHECK(!foreign_file__defines_version(&libc->file, "GLIBC_9.99") &&
	      !foreign_file__defines_version(&libc->file, ""));
	CHECK(!foreign_file__defines_version(&own->file, "GLIBC_2.2.5"));
	REQUIRE(!elf__open(&elf, own->fd));
	elf__each_needed_version(elf, count, &n);
	elf__close(elf);
	CHECK(n > 0);
	space__free(&s);
}

#ifdef __x86_64__
/* The state of a thread at the first instruction of a function of this program, without a caller. */
static bool is_safe_here(struct space *s, char *why, size_t len)
{
	static u64 stack[65536 / 8 + 1024];
	static struct tracee t;

	t.tid = (u32)getpid();
	t.regs.rip = (u64)(uintptr_t)count;
	t.regs.rsp = (u64)(uintptr_t)(stack + 256);
	return safe_point__is_safe(s, &t, why, len);
}

TEST(a_file_without_an_answer_has_no_safe_point)
{
	static const char *const switches[] = { "foreign-hang", "foreign-crash" };
	struct space s = SPACE_NONE;
	char why[512] = "";

	REQUIRE(!space__read(&s, (u32)getpid()));
	CHECK(safe_point__prepare(&s) && is_safe_here(&s, why, sizeof(why)));
	space__free(&s);
	for (u32 i = 0; i < 2; i++) {
		setenv("SONDE_TEST", switches[i], 1);
		REQUIRE(!space__read(&s, (u32)getpid()));
		space__limit(&s, 100);
		/* a hanging child uses up the time; one that crashes is replaced and crashes again */
		if (!i)
			CHECK(!safe_point__prepare(&s));
		space__limit(&s, 100);
		CHECK(!is_safe_here(&s, why, sizeof(why)) && strstr(why, "did not answer"));
		space__free(&s);
		unsetenv("SONDE_TEST");
	}
}

/* Only a file that is not regular certainly has no functions. */
TEST(a_file_that_cannot_be_opened_has_no_safe_point)
{
	static const int errors[] = { -EACCES, -EREMOTE, -ENOENT, -EMFILE, -EINVAL };

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct space s = SPACE_NONE;
		struct code *own;
		char why[512] = "";

		REQUIRE(!space__read(&s, (u32)getpid()));
		own = space__at(&s, (u64)(uintptr_t)count);
		REQUIRE(own);
		own->opened = true;
		own->error = errors[i];
		CHECK(safe_point__prepare(&s));
		CHECK(is_safe_here(&s, why, sizeof(why)) == (errors[i] == -EINVAL));
		CHECK(errors[i] == -EINVAL || strstr(why, "could not be opened"));
		CHECK(errors[i] != -EREMOTE || strstr(why, "--remote-files"));
		space__free(&s);
	}
}
#endif

TEST(processes)
{
	char why[256];

	CHECK(check__process(0x7ffffff0, why, sizeof(why)) == -ESRCH);
	CHECK(check__status((u32)getpid(), "Tgid", 10) == (u64)getpid());
	CHECK(!check__status((u32)getpid(), "NoSuchLine", 10));
}

static u32 run(const struct sock_filter *filter, u32 n, int nr, u64 arg)
{
	struct seccomp_data data = { .nr = nr, .arch = AUDIT_ARCH_X86_64, .args = { arg } };

	return seccomp__run(filter, n, &data);
}

TEST(filters_are_evaluated_as_in_the_kernel)
{
	const struct sock_filter arithmetic[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 5),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 1),
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1),
		BPF_STMT(BPF_ALU | BPF_NEG, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_filter jumps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 100, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, 2),
		BPF_STMT(BPF_RET | BPF_K, 3),
	};

	CHECK(run(arithmetic, 10, 0, 7) == (u32) - ((7 * 12 * 2) ^ 1));
	CHECK(run(jumps, 7, 100, 0) == 1 && run(jumps, 7, 99, 0) == 3 && run(jumps, 7, 8, 0) == 2);
}

TEST(an_invalid_filter_kills)
{
	const struct sock_filter endless[] = { BPF_STMT(BPF_LD | BPF_IMM, 1) };
	const struct sock_filter far[] = { BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0),
					   BPF_STMT(BPF_RET | BPF_K, 0x7fff0000) };
	const struct sock_filter divides[] = { BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_LD | BPF_MEM, 77),
					       BPF_STMT(BPF_ST, 99), BPF_STMT(BPF_RET | BPF_A, 0) };

	CHECK(run(endless, 1, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	CHECK(run(far, 2, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	CHECK(run(divides, 4, 0, 0) == 0);
	CHECK(run(endless, 0, 0, 0) == SECCOMP_RET_KILL_PROCESS);
}

TEST_MAIN()
