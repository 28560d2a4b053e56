// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Symbols of files that were stripped by binutils in each of the usual ways. */
#include "test.h"

#include "elf/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

static char dir[256];

static bool run(const char *format, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	return !system(command);
}

/* A library with one function that only .symtab names and two that are exported. */
static bool build(const char *flags)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/sonde-debug-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) &&
	       run("cd '%s' && printf '%%s\\n' 'static __attribute__((noinline)) int hidden_one(int i) { return i * 7 + "
		   "rand(); }' 'int shown(int i) { return hidden_one(i) + 1; }' 'int shown_two(int i) { return i; }' "
		   "| cc -include stdlib.h -shared -fPIC -O1 %s -x c -o whole.so - && cp whole.so it.so",
		   dir, flags);
}

static struct elf *open_at(const char *name)
{
	char path[PATH_MAX];
	struct elf *elf;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* the descriptor stays open to the end of the program */
	return fd < 0 || elf__open(&elf, fd) ? NULL : elf;
}

/* The function's offset in the unstripped file, which every stripped one shares. */
static u64 true_offset(const char *name)
{
	struct elf *elf = open_at("whole.so");
	struct elf_symbol sym = {};

	if (elf)
		elf__find_symbol(elf, name, &sym);
	elf__close(elf);
	return sym.offset;
}

static bool finds(struct elf *elf)
{
	struct elf_symbol sym;

	return !elf__find_symbol(elf, "hidden_one", &sym) && sym.offset && sym.offset == true_offset("hidden_one") &&
	       sym.function && !sym.dynamic && !elf__find_symbol(elf, "shown", &sym) && sym.dynamic &&
	       sym.offset == true_offset("shown");
}

/* Builds the library, runs these commands in its folder and opens it. NULL: one of these failed. */
static struct elf *prepare(const char *flags, const char *commands)
{
	return build(flags) && run("cd '%s' && %s", dir, commands) ? open_at("it.so") : NULL;
}

static int add(struct elf *elf, const char *name)
{
	char path[PATH_MAX], why[128];
	struct debug_search s = { .path = path };

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return debug__add(elf, &s, why, sizeof(why));
}

static void clean(struct elf *elf)
{
	elf__close(elf);
	run("rm -rf '%s'", dir);
}

TEST(finds_functions_in_debugdata)
{
	struct elf *elf =
		prepare("-Wl,--build-id",
			"objcopy --only-keep-debug whole.so mini && strip --strip-debug mini && xz -k mini && "
			"strip it.so && objcopy --add-section .gnu_debugdata=mini.xz it.so");

	REQUIRE(elf);
	CHECK(elf__stripped(elf) && !finds(elf) && !elf__names_hold(elf, "hidden_one"));
	CHECK(!add(elf, "it.so"));
	CHECK(finds(elf) && elf__names_hold(elf, "hidden_one"));
	clean(elf);
}

TEST(finds_several_names_in_one_pass)
{
	static const char *const names[] = { "hidden_one", "nowhere", "shown", "shown_two" };
	struct elf_symbol out[4];
	struct elf *elf;

	REQUIRE(build("-Wl,--build-id"));
	elf = open_at("whole.so");
	REQUIRE(elf);
	CHECK(elf__find_symbols(elf, names, 4, out) == 1);
	CHECK(out[0].name && !out[1].name && out[2].name && out[3].name && out[2].dynamic && !out[0].dynamic);
	CHECK(elf__needs(elf, "libc.so") && !elf__needs(elf, "libcudart.so"));
	clean(elf);
}

TEST(bounds_debugdata_that_unpacks_without_end)
{
	struct elf *elf = prepare("-Wl,--build-id", "head -c 300000000 /dev/zero | xz -T1 -1 > bomb && strip it.so && "
						    "objcopy --add-section .gnu_debugdata=bomb it.so");

	REQUIRE(elf);
	CHECK(elf__add_debugdata(elf) == -EFBIG);
	clean(elf);
}

TEST(takes_only_a_debug_file_with_the_same_build_id)
{
	struct elf *elf = prepare("-Wl,--build-id=0x1111111111111111111111111111111111111111",
				  "objcopy --only-keep-debug whole.so it.debug && strip it.so && "
				  "objcopy --add-gnu-debuglink=it.debug it.so && mkdir .debug && mv it.debug .debug");

	REQUIRE(elf);
	CHECK(!add(elf, "it.so"));
	CHECK(finds(elf));
	elf__close(elf);
	/* another build with the same file name */
	REQUIRE(run(
		"cd '%s' && echo 'int other(void) { return 1; }' | cc -shared -fPIC -Wl,--build-id -x c -o other.so - "
		"&& objcopy --only-keep-debug other.so .debug/it.debug",
		dir));
	elf = open_at("it.so");
	REQUIRE(elf);
	CHECK(add(elf, "it.so") == -ENOENT);
	CHECK(!finds(elf));
	clean(elf);
}

TEST(takes_a_debug_file_without_build_id_by_its_checksum)
{
	struct elf *elf = prepare("-Wl,--build-id=none",
				  "objcopy --only-keep-debug whole.so it.debug && strip it.so && "
				  "objcopy --add-gnu-debuglink=it.debug it.so");

	REQUIRE(elf);
	CHECK(!*elf__build_id(elf));
	CHECK(!add(elf, "it.so"));
	CHECK(finds(elf));
	elf__close(elf);
	REQUIRE(run("cd '%s' && printf x >> it.debug", dir));
	elf = open_at("it.so");
	REQUIRE(elf);
	CHECK(add(elf, "it.so") == -ENOENT);
	clean(elf);
}

static int refuse(u32 pid, const char *path, void *arg)
{
	return *(const int *)arg;
}

TEST(names_a_debug_file_on_a_network_file_system)
{
	int untrusted = -EPERM, remote = -EREMOTE;
	char path[PATH_MAX], why[512];
	struct debug_search s = { .path = path, .open = refuse };
	struct elf *elf;

	REQUIRE(build("-Wl,--build-id"));
	snprintf(path, sizeof(path), "%s/it.so", dir);
	elf = open_at("it.so");
	REQUIRE(elf);
	s.arg = &remote;
	CHECK(debug__add(elf, &s, why, sizeof(why)) == -ENOENT && strstr(why, "--remote-files"));
	s.arg = &untrusted;
	CHECK(debug__add(elf, &s, why, sizeof(why)) == -ENOENT && !strstr(why, "--remote-files") && *why);
	clean(elf);
}

TEST(opens_only_regular_files_as_debug_files)
{
	struct elf *elf = prepare("-Wl,--build-id=none",
				  "objcopy --only-keep-debug whole.so it.debug && strip it.so && "
				  "objcopy --add-gnu-debuglink=it.debug it.so && rm it.debug && mkfifo it.debug");

	REQUIRE(elf);
	CHECK(add(elf, "it.so") == -ENOENT);
	clean(elf);
}

TEST_MAIN()
