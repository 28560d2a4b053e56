// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The checks that `sonde inject` makes before it changes a process, tried on this one. */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/check.h"
#include "inject/safe_point.h"
#include "inject/seccomp.h"
#include "process/procs.h"
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

/* The state of a thread at the first instruction of a function of this program, with this stack. */
static bool is_safe_with(struct space *s, const u64 *stack, char *why, size_t len)
{
	static struct tracee t;

	t.tid = (u32)getpid();
	t.regs.rip = (u64)(uintptr_t)count;
	t.regs.rsp = (u64)(uintptr_t)stack;
	return safe_point__is_safe(s, &t, why, len);
}

/* The same without a caller. */
static bool is_safe_here(struct space *s, char *why, size_t len)
{
	static u64 stack[65536 / 8 + 1024];

	return is_safe_with(s, stack + 256, why, len);
}

/* The address behind the first instruction `call *disp8(%r12)` in the loader's code; 0: it has none. */
static u64 after_call(struct space *s)
{
	static const u8 call[] = { 0x41, 0xff, 0x54, 0x24 };
	const struct code *c = space__library(s, "ld-linux");
	u64 size = c ? c->end - c->start : 0;
	u8 *found = size ? memmem((void *)(uintptr_t)c->start, size, call, sizeof(call)) : NULL;

	return found ? (u64)(uintptr_t)(found + sizeof(call) + 1) : 0;
}

/* A stack that can't be unwound, as its first return address is in no code, and that ends with its page. */
TEST(the_end_of_a_stack_is_searched)
{
	struct space s = SPACE_NONE;
	u8 *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 *stack = (u64 *)(pages + 4096) - 16;
	char why[512] = "";

	REQUIRE(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE) && !space__read(&s, (u32)getpid()));
	stack[0] = 0x5d;
	CHECK(is_safe_with(&s, stack, why, sizeof(why)));
	stack[15] = after_call(&s);
	REQUIRE(stack[15]);
	CHECK(!is_safe_with(&s, stack, why, sizeof(why)) && strstr(why, "may be inside ld-linux"));
	/* not a return address */
	stack[15]++;
	CHECK(is_safe_with(&s, stack, why, sizeof(why)));
	CHECK(!is_safe_with(&s, (u64 *)(pages + 4096), why, sizeof(why)) && strstr(why, "can't be unwound"));
	munmap(pages, 8192);
	space__free(&s);
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

TEST(processes)
{
	char why[256];

	CHECK(check__process(0x7ffffff0, false, why, sizeof(why)) == -ESRCH);
	CHECK(procs__status((u32)getpid(), "Tgid: %llu") == (u64)getpid());
	CHECK(!procs__status((u32)getpid(), "NoSuchLine: %llu"));
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
