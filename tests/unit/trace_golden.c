// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Old files give the same events as ever, by the reader and by the independent one in
 * Python; so does a newly written file. Runs in the repository's root.
 */
#include "test.h"
#include "trace_support.h"

#define PYTHON "/usr/bin/python3"

static char *read_text(FILE *f)
{
	size_t n = 0, room = 0;
	char *text = NULL;

	do {
		room = room * 2 + 65536;
		text = realloc(text, room);
		n += fread(text + n, 1, room - 1 - n, f);
	} while (n == room - 1);
	text[n] = 0;
	return text;
}

static char *dump_of(const char *path)
{
	char err[256] = "", *text;
	struct trace *t;
	u64 faults;

	if (!CHECK(!trace__open(&t, path, err, sizeof(err)))) {
		printf("# %s: %s\n", path, err);
		return NULL;
	}
	CHECK(!trace__verify(t, &faults, err, sizeof(err)));
	text = support_dump(t, NULL);
	trace__close(t);
	return text;
}

static void first_difference(const char *a, const char *b)
{
	size_t i = 0;

	while (a[i] && a[i] == b[i])
		i++;
	printf("# they differ at byte %zu: '%.40s' and '%.40s'\n", i, a + i, b + i);
}

static bool have_python(void)
{
	return !system(PYTHON " -c 'import zstandard' 2>/dev/null");
}

static char *python_dump(const char *path, const char *option)
{
	char command[512], *text;
	FILE *f;

	snprintf(command, sizeof(command), PYTHON " tests/lib/dump.py '%s' %s", path, option);
	f = popen(command, "r");
	if (!f)
		return NULL;
	text = read_text(f);
	CHECK(!pclose(f));
	return text;
}

static const char *const golden[] = { "v1.0-small", "v1.0-chunks", "v1.0-killed", "v1.0-empty" };

TEST(golden_files)
{
	u32 i;

	for (i = 0; i < sizeof(golden) / sizeof(*golden); i++) {
		char path[128], *want, *got;
		FILE *f;

		snprintf(path, sizeof(path), "tests/golden/%s.txt", golden[i]);
		f = fopen(path, "r");
		REQUIRE(f);
		want = read_text(f);
		fclose(f);
		snprintf(path, sizeof(path), "tests/golden/%s.sonde", golden[i]);
		got = dump_of(path);
		if (got && !CHECK(!strcmp(got, want))) {
			printf("# %s\n", path);
			first_difference(got, want);
		}
		free(got);
		free(want);
	}
}

TEST(golden_files_in_python)
{
	u32 i;

	if (!have_python())
		SKIP("no python3-zstandard");
	for (i = 0; i < sizeof(golden) / sizeof(*golden); i++) {
		char path[128], *here, *there;

		snprintf(path, sizeof(path), "tests/golden/%s.sonde", golden[i]);
		here = dump_of(path);
		there = python_dump(path, "--verify");
		if (!CHECK(here && there && !strcmp(here, there))) {
			printf("# %s\n", path);
			first_difference(here, there);
		}
		free(here);
		free(there);
	}
}

TEST(python_reads_what_is_written)
{
	char path[] = "/tmp/sonde-test-XXXXXX", *here, *there;
	int fd;

	if (!have_python())
		SKIP("no python3-zstandard");
	fd = mkstemp(path);
	REQUIRE(fd >= 0 && !support_write_fd(fd, 20000, 3000, true));
	close(fd);
	here = dump_of(path);
	there = python_dump(path, "");
	if (!CHECK(here && there && !strcmp(here, there)))
		first_difference(here, there);
	free(here);
	free(there);
	unlink(path);
}

TEST(zstd_accepts_the_file)
{
	if (system("command -v zstd >/dev/null"))
		SKIP("no zstd");
	CHECK(!system("zstd -q -t < tests/golden/v1.0-chunks.sonde"));
	CHECK(!system("zstd -q -d -c < tests/golden/v1.0-chunks.sonde | head -c 11 | grep -q machine"));
}

TEST_MAIN()
