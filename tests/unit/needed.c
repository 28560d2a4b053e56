// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The libraries that a program will map, compared with ldd; and damaged programs. */
#include "elf/needed.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct found {
	struct stat list[512];
	u32 n;
};

static void note(int fd, void *arg)
{
	struct found *f = arg;

	if (f->n < 512 && !fstat(fd, &f->list[f->n]))
		f->n++;
}

static bool has(const struct found *f, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return true;
	for (u32 i = 0; i < f->n; i++)
		if (f->list[i].st_dev == st.st_dev && f->list[i].st_ino == st.st_ino)
			return true;
	printf("# %s is missing\n", path);
	return false;
}

/* The number of libraries that ldd lists, or -1 if one of them was not found. */
static int compare_with_ldd(const char *program)
{
	char command[512], line[1024], path[512];
	struct found found = {};
	int n = 0;
	FILE *ldd;

	needed__each(program, note, &found);
	if (!has(&found, program))
		return -1;
	snprintf(command, sizeof(command), "ldd '%s'", program);
	ldd = popen(command, "r");
	while (ldd && fgets(line, sizeof(line), ldd)) {
		if (sscanf(line, " %*s => %511s", path) != 1 || *path != '/')
			continue;
		n++;
		if (!has(&found, path))
			n = -10000;
	}
	if (ldd)
		pclose(ldd);
	return n;
}

TEST(finds_the_loaders_libraries)
{
	char self[512];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	REQUIRE(len > 0);
	self[len] = '\0';
	CHECK(compare_with_ldd("/bin/sh") > 0);
	CHECK(compare_with_ldd("/usr/bin/env") > 0);
	CHECK(compare_with_ldd("/usr/bin/python3") >= 0);
	/* libbpf needs libelf, which needs zlib, an indirect dependency */
	CHECK(compare_with_ldd(self) > 5);
}

static void write_file(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		printf("# cannot write %s\n", path);
	if (fd >= 0)
		close(fd);
}

TEST(scripts_lead_to_their_interpreters)
{
	static const char *const scripts[] = { "#!/bin/sh\necho\n", "#! /bin/sh -e", "#!/usr/bin/env sh\n",
					       "#!/usr/bin/env -S A=b sh -e\n" };
	char path[] = "/tmp/sonde-needed-XXXXXX";
	int fd = mkstemp(path);

	REQUIRE(fd >= 0);
	close(fd);
	for (u32 i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct found found = {};

		write_file(path, scripts[i], strlen(scripts[i]));
		needed__each(path, note, &found);
		CHECK(has(&found, "/bin/sh") && has(&found, path) && found.n > 2);
	}
	/* a script that is its own interpreter */
	{
		char line[64];
		struct found found = {};

		snprintf(line, sizeof(line), "#!%s\n", path);
		write_file(path, line, strlen(line));
		needed__each(path, note, &found);
		CHECK(found.n == 1);
	}
	unlink(path);
}

TEST(damaged_programs_do_no_harm)
{
	char path[] = "/tmp/sonde-needed-XXXXXX";
	static unsigned char whole[1 << 20], copy[1 << 20];
	int fd = open("/bin/sh", O_RDONLY);
	ssize_t size = fd < 0 ? -1 : read(fd, whole, sizeof(whole));
	unsigned int seed = 1;

	if (fd >= 0)
		close(fd);
	REQUIRE(size > 4096);
	fd = mkstemp(path);
	REQUIRE(fd >= 0);
	close(fd);
	for (u32 i = 0; i < 300; i++) {
		struct found found = {};
		/* damages the headers, the whole file, or cuts off the end */
		size_t range = i % 3 == 0 ? 1024 : (size_t)size, len = i % 3 == 2 ? rand_r(&seed) % size : size;

		memcpy(copy, whole, size);
		for (u32 k = 0; k < (i % 3 == 1 ? 2000u : 8u); k++)
			copy[rand_r(&seed) % range] = rand_r(&seed);
		write_file(path, copy, len);
		needed__each(path, note, &found);
		CHECK(found.n >= 1);
	}
	unlink(path);
}

TEST(programs_are_searched_for_like_execvp)
{
	char path[4096];

	setenv("PATH", "/no/such:/bin:/usr/bin", 1);
	CHECK(!needed__program("sh", path, sizeof(path)) && !strcmp(path, "/bin/sh"));
	CHECK(!needed__program("/bin/sh", path, sizeof(path)));
	CHECK(needed__program("sonde-no-such", path, sizeof(path)) == -ENOENT);
	CHECK(needed__program("", path, sizeof(path)) == -ENOENT);
	CHECK(needed__program("/etc/passwd", path, sizeof(path)) == -EACCES);
	CHECK(needed__program("/etc", path, sizeof(path)) == -EACCES);
	CHECK(needed__program("/no/such", path, sizeof(path)) == -ENOENT);
}

TEST_MAIN()
