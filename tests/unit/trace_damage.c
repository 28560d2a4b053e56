// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that were cut off, damaged or written to a full disk. */
#include <sys/mount.h>
#include <sched.h>

#include "test.h"
#include "trace/format.h"
#include "trace_support.h"

static int open_result(const void *bytes, size_t len, char *err, size_t err_len)
{
	struct trace *t;
	int res = support_open_bytes(&t, bytes, len, err, err_len);

	trace__close(t);
	return res;
}

TEST(not_a_trace)
{
	u8 noise[4096];
	char err[256] = "";
	struct trace *t;
	u32 i;

	for (i = 0; i < sizeof(noise); i++)
		noise[i] = i * 37;
	CHECK(open_result(noise, 0, err, sizeof(err)) == -ENOMSG);
	CHECK_TEXT(err, "not a sonde trace: the file is empty");
	CHECK(open_result(noise, 1, err, sizeof(err)) == -ENOMSG);
	CHECK(open_result(noise, sizeof(noise), err, sizeof(err)) == -ENOMSG);
	CHECK(trace__open(&t, "/nonexistent/x", err, sizeof(err)) == -ENOENT && !t);
	CHECK(trace__open(&t, "/tmp", err, sizeof(err)) == -ENOMSG && !t);
}

TEST(versions)
{
	char err[256] = "";
	size_t len = 0;
	u8 *bytes = support_write(50, 0, true, &len), *payload = bytes + FRAME_HEADER;

	REQUIRE(bytes);
	put16(payload + FILE_MINOR, 77);
	CHECK(open_result(bytes, len, err, sizeof(err)) == -EBADMSG); /* the hash */
	put16(payload + FILE_MAJOR, FORMAT_MAJOR + 1);
	CHECK(open_result(bytes, len, err, sizeof(err)) == -EPROTO);
	CHECK(strstr(err, "newer sonde"));
	free(bytes);
}

static int count_rows(const struct rows *r, void *arg)
{
	*(u64 *)arg += rows__count(r);
	return 0;
}

/* A truncated file is read up to its last complete chunk; only the head is required. */
TEST(every_truncation)
{
	char err[256] = "";
	size_t len = 0, cut;
	u8 *bytes = support_write(120, 30, true, &len);
	u64 before = 0, events;
	struct trace *t;
	int res;

	REQUIRE(bytes);
	for (cut = 0; cut < len; cut++) {
		res = support_open_bytes(&t, bytes, cut, err, sizeof(err));
		if (res) {
			CHECK(res == (cut < FRAME_HEADER + FILE_MAGIC_SIZE ? -ENOMSG : -EBADMSG));
			CHECK(before == 0);
			continue;
		}
		events = 0;
		CHECK(!trace__read(t, NULL, count_rows, &events));
		CHECK(!trace__damaged(t));
		CHECK(events >= before && events == trace__summary(t)->events);
		CHECK(!trace__summary(t)->has_index && trace__summary(t)->torn_bytes < len);
		before = events;
		trace__close(t);
		if (test_failed) {
			printf("# cut at %zu\n", cut);
			break;
		}
	}
	CHECK(before == 120 + 1);
	free(bytes);
}

static u64 faults_of(const u8 *bytes, size_t len, int *res)
{
	char err[256] = "";
	struct trace *t;
	u64 faults = 0;

	*res = support_open_bytes(&t, bytes, len, err, sizeof(err));
	if (!*res)
		*res = trace__verify(t, &faults, err, sizeof(err));
	trace__close(t);
	return faults;
}

static u64 torn_bytes(const u8 *bytes, size_t len)
{
	char err[256];
	struct trace *t;
	u64 torn = 0;

	if (!support_open_bytes(&t, bytes, len, err, sizeof(err)))
		torn = trace__summary(t)->torn_bytes;
	trace__close(t);
	return torn;
}

static void flip_everywhere(bool finish)
{
	size_t len = 0, at;
	u8 *bytes = support_write(60, 20, finish, &len);
	int res;

	REQUIRE(bytes);
	CHECK(faults_of(bytes, len, &res) == 0 && !res);
	/* one bit of each byte: all eight take minutes with the sanitizers and find no more faults */
	for (at = 0; at < len && !test_failed; at++) {
		bytes[at] ^= 1 << at % 8;
		faults_of(bytes, len, &res);
		/* without an index a larger size in the last header looks like a torn chunk */
		if (!CHECK(res < 0 || (!finish && torn_bytes(bytes, len))))
			printf("# byte %zu\n", at);
		bytes[at] ^= 1 << at % 8;
	}
	free(bytes);
}

TEST(a_flipped_bit_is_found)
{
	flip_everywhere(true);
}

TEST(a_flipped_bit_is_found_without_index)
{
	flip_everywhere(false);
}

/* A damaged chunk loses only its own events, also without an index. */
static void damage_one(bool finish, u32 in_chunk)
{
	char err[256] = "";
	size_t len = 0, at = 0, i;
	u8 *bytes = support_write(400, 100, finish, &len);
	struct trace *t;
	u64 events = 0, faults;

	REQUIRE(bytes);
	for (i = 100; i + 12 < len && !at; i++) /* the second chunk's header */
		if (get32(bytes + i) == FRAME_MAGIC && get32(bytes + i + 8) == CHUNK_TAG &&
		    get64(bytes + i + 8 + CHUNK_NUMBER) == 1)
			at = i;
	REQUIRE(at);
	bytes[at + in_chunk] ^= 0x10;
	REQUIRE(!support_open_bytes(&t, bytes, len, err, sizeof(err)));
	CHECK(!trace__read(t, NULL, count_rows, &events));
	CHECK(events >= 300 && events < 402);
	CHECK(trace__damaged(t) > 0);
	CHECK(trace__verify(t, &faults, err, sizeof(err)) == -EBADMSG && faults > 0 && *err);
	trace__close(t);
	free(bytes);
}

/* The names are read only when the file is opened; reports without them must still state the damage. */
TEST(damaged_names_are_counted)
{
	char err[256] = "";
	size_t len = 0, at = 0;
	u8 *bytes = support_write(400, 100, true, &len);
	struct trace *t;

	REQUIRE(bytes);
	for (size_t i = 100; i + 12 < len && !at; i++)
		if (get32(bytes + i) == FRAME_MAGIC && get32(bytes + i + 8) == CHUNK_TAG)
			at = i + FRAME_HEADER + CHUNK_ENTRIES;
	REQUIRE(at && get16(bytes + at + KIND_ID) == ID_meta_string);
	bytes[at + get32(bytes + at - CHUNK_ENTRIES + CHUNK_KINDS) * KIND_ENTRY + 8 + 10] ^= 0x10;
	REQUIRE(!support_open_bytes(&t, bytes, len, err, sizeof(err)));
	CHECK(trace__damaged(t) == 1);
	trace__close(t);
	free(bytes);
}

TEST(a_damaged_chunk_is_skipped)
{
	damage_one(true, 20); /* its number */
	damage_one(true, 8 + CHUNK_ENTRIES + KIND_HASH);
	damage_one(false, 0); /* its magic */
	damage_one(false, 4); /* its size */
	damage_one(false, 6); /* a size beyond the end of the file */
	damage_one(false, 30);
}

static int fill(int fd, u64 *whole)
{
	struct schema *s = support_schema();
	struct trace_writer *w = NULL;
	u32 i;
	int err = trace_writer__create(&w, fd, s, &support_head);

	for (i = 0; i < 3000000 && !err; i++) {
		*whole = w ? trace_writer__bytes(w) : 0;
		err = support_append(w, i);
	}
	if (w && err) {
		CHECK(support_append(w, 1) == err);
		CHECK(trace_writer__flush(w) == err && trace_writer__tick(w, 1) == err);
		CHECK(trace_writer__finish(w) == err);
		CHECK(trace_writer__bytes(w) == *whole);
	}
	trace_writer__free(w);
	schema__free(s);
	return err;
}

TEST(dev_full)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	u64 whole = 0;

	if (fd < 0)
		SKIP("no /dev/full");
	CHECK(fill(fd, &whole) == -ENOSPC);
	close(fd);
}

TEST(full_disk_keeps_whole_chunks)
{
	char dir[] = "/tmp/sonde-test-XXXXXX", path[64], err[256] = "";
	u64 whole = 0, faults;
	struct trace *t = NULL;
	int fd;

	REQUIRE(mkdtemp(dir));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=6m")) {
		rmdir(dir);
		SKIP("cannot mount a small tmpfs");
	}
	snprintf(path, sizeof(path), "%s/x.sonde", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fill(fd, &whole) == -ENOSPC);
	close(fd);
	CHECK(!trace__open(&t, path, err, sizeof(err)));
	if (t) {
		CHECK(trace__summary(t)->file_bytes == whole && !trace__summary(t)->torn_bytes);
		CHECK(trace__summary(t)->chunks > 0 && !trace__summary(t)->has_index);
		CHECK(!trace__verify(t, &faults, err, sizeof(err)));
	}
	trace__close(t);
	umount(dir);
	rmdir(dir);
}

/* A file that shrinks while it is read must not kill the reader. */
TEST(truncated_while_open)
{
	char path[64], err[256] = "";
	int fd = support_memfd(path, sizeof(path));
	struct trace *t;
	u64 events = 0;

	REQUIRE(!support_write_fd(fd, 1000, 100, true));
	REQUIRE(!trace__open(&t, path, err, sizeof(err)));
	CHECK(!ftruncate(fd, 3000));
	CHECK(!trace__read(t, NULL, count_rows, &events));
	CHECK(trace__damaged(t) > 0 && events < 1000);
	trace__close(t);
	close(fd);
}

TEST_MAIN()
