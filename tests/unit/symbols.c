// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// test: smoke
/*
 * In this program itself, names of addresses are compared with dladdr(), and unwinding by .eh_frame with backtrace().
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <unistd.h>

#include "elf/elf.h"
#include "record/examine/symbols.h"
#include "test.h"

struct file {
	int fd;
	struct elf *elf;
	struct symbols *symbols;
	u64 bias; /* load address minus file address */
};

/* The mapped file with this address. */
static bool open_file(struct file *f, const void *address)
{
	Dl_info info;

	if (!dladdr(address, &info))
		return false;
	f->bias = (u64)(uintptr_t)info.dli_fbase;
	f->fd = open(*info.dli_fname == '/' ? info.dli_fname : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return f->fd >= 0 && !elf__open(&f->elf, f->fd) && !symbols__new(&f->symbols, f->elf, f->fd);
}

static void close_file(struct file *f)
{
	symbols__free(f->symbols);
	elf__close(f->elf);
	close(f->fd);
}

static const struct code_place *place_of(struct file *f, const void *address)
{
	u64 offset;

	if (elf__offset(f->elf, (u64)(uintptr_t)address - f->bias, &offset))
		return NULL;
	return symbols__at(f->symbols, offset);
}

/* libc's own function, as sanitizers wrap many. */
static void *libc_symbol(const char *name)
{
	static void *libc;

	if (!libc)
		libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	return libc ? dlsym(libc, name) : NULL;
}

/* dladdr's name for the address, one of possibly several. */
static bool same_function(const struct code_place *p, struct file *f, const void *address)
{
	Dl_info info;
	void *by_name;

	if (!p || !p->name || !dladdr(address, &info) || !info.dli_sname)
		return false;
	by_name = libc_symbol(p->name);
	return !strcmp(p->name, info.dli_sname) || by_name == info.dli_saddr ||
	       f->bias + p->function == (u64)(uintptr_t)info.dli_saddr;
}

TEST(names_exported_functions_of_libc)
{
	static const char *const names[] = { "qsort", "printf", "getenv", "read", "malloc", "fgets", "strtol", "fork" };
	struct file f = {};

	REQUIRE(open_file(&f, libc_symbol("qsort")));
	for (u32 i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *address = libc_symbol(names[i]);

		CHECK(same_function(place_of(&f, address), &f, address));
		CHECK(same_function(place_of(&f, address + 3), &f, address + 3));
	}
	close_file(&f);
}

__attribute__((noinline)) static int a_static_function(int x)
{
	return x * 3 + (int)getpid();
}

TEST(names_static_functions_by_symtab)
{
	const struct code_place *p;
	struct file f = {};

	REQUIRE(open_file(&f, (void *)a_static_function));
	p = place_of(&f, (char *)(uintptr_t)a_static_function + 1);
	REQUIRE(p && p->name);
	CHECK(!strcmp(p->name, "a_static_function"));
	CHECK(f.bias + p->function == (u64)(uintptr_t)a_static_function);
	CHECK(a_static_function(1) != 0);
	close_file(&f);
}

TEST(names_nothing_beyond_the_code)
{
	struct file f = {};

	REQUIRE(open_file(&f, (void *)a_static_function));
	CHECK(!symbols__at(f.symbols, ~0ULL));
	CHECK(!symbols__at(f.symbols, 0));
	close_file(&f);
}

/* Unwinds this thread from its registers by the tables alone, and checks each step. */
__attribute__((noinline)) static u32 unwind_here(u64 *pcs, u32 max)
{
	u64 pc, sp, bp, cfa;
	u32 n = 0;

	__asm__ volatile("lea 0(%%rip), %0\n mov %%rsp, %1\n mov %%rbp, %2" : "=r"(pc), "=r"(sp), "=r"(bp));
	while (n < max) {
		const struct code_place *p;
		struct file f = {};

		if (!open_file(&f, (void *)(uintptr_t)(pc - (n > 0))))
			break;
		p = place_of(&f, (void *)(uintptr_t)(pc - (n > 0)));
		if (!p || p->unwind_error || p->unwind.outermost) {
			close_file(&f);
			break;
		}
		cfa = (p->unwind.by_frame_pointer ? bp : sp) + (u64)(s64)p->unwind.cfa;
		if (p->unwind.saved)
			bp = *(u64 *)(uintptr_t)(cfa + (u64)(s64)p->unwind.frame_pointer);
		pc = *(u64 *)(uintptr_t)(cfa - 8);
		sp = cfa;
		pcs[n++] = pc;
		close_file(&f);
	}
	return n;
}

struct walked {
	u64 own[64];
	void *theirs[64];
	u32 n_own;
	int n_theirs;
};

/* Through libc, which has no frame pointers. */
static int compare(const void *a, const void *b, void *arg)
{
	struct walked *w = arg;
	int (*backtrace)(void **, int) = (int (*)(void **, int))libc_symbol("backtrace");

	w->n_own = unwind_here(w->own, 64);
	w->n_theirs = backtrace(w->theirs, 64);
	return *(const int *)a - *(const int *)b;
}

TEST(unwinds_like_libgcc)
{
	int numbers[2] = { 2, 1 };
	void (*sort)(void *, size_t, size_t, int (*)(const void *, const void *, void *), void *);
	struct walked w = {};
	u32 common = 0;

	sort = (void (*)(void *, size_t, size_t, int (*)(const void *, const void *, void *), void *))libc_symbol(
		"qsort_r");
	REQUIRE(sort);
	sort(numbers, 2, sizeof(int), compare, &w);
	/* both begin in compare(), at different addresses */
	REQUIRE(w.n_own > 4 && w.n_theirs > 4);
	for (u32 i = 1; i < w.n_own && (int)i < w.n_theirs; i++)
		common += w.own[i] == (u64)(uintptr_t)w.theirs[i];
	CHECK(common + 1 == w.n_own);
	CHECK((int)w.n_own >= w.n_theirs - 1);
}

/* Every address in every function of libc has a result or an error. */
TEST(accepts_every_function_of_libc)
{
	u64 addr, size, fine = 0, all = 0;
	struct file f = {};

	REQUIRE(open_file(&f, libc_symbol("qsort")));
	for (u32 i = 0; elf__text(f.elf, i, &addr, &size); i++)
		for (u64 at = addr; at < addr + size; at += 61) {
			struct elf_unwind u;
			int err = elf__unwind(f.elf, at, &u);

			all++;
			fine += !err;
			CHECK(!err || err == -ENOENT || err == -ENOTSUP);
		}
	CHECK(fine * 100 > all * 90);
	close_file(&f);
}

TEST_MAIN()
