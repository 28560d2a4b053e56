// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The owners whose files may be probed. */
#include "attach/ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static int make_file(mode_t mode, uid_t owner)
{
	int fd = open(getenv("TMPDIR") ?: "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);

	if (fd < 0 || (owner && fchown(fd, owner, owner)) || fchmod(fd, mode))
		return -1;
	return fd;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(int *)arg = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 1;
}

TEST(setuid_programs_are_not_probed)
{
	static const struct {
		mode_t mode;
		int result;
	} cases[] = { { 0755, 0 }, { 04755, -EPERM }, { 04644, -EPERM }, { 02755, -EPERM }, { 02644, 0 }, { 01755, 0 } };
	struct ownership *o = ownership__new(false);

	REQUIRE(o);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = make_file(cases[i].mode, 0);

		CHECK(fd >= 0 && ownership__check(o, fd, false) == cases[i].result);
		close(fd);
	}
	ownership__free(o);
}

TEST(the_c_library_gets_only_declared_probes)
{
	struct ownership *o = ownership__new(false);
	int fd = -1;

	dl_iterate_phdr(find_libc, &fd);
	if (fd < 0)
		SKIP("linked with no libc.so");
	REQUIRE(o);
	CHECK(ownership__check(o, fd, true) == -EPERM);
	CHECK(!ownership__check(o, fd, false));
	close(fd);
	ownership__free(o);
}

TEST(trusted_files_belong_to_root_or_the_mapping_user)
{
	struct ownership *strict = ownership__new(true), *any = ownership__new(false);
	int roots = make_file(0755, 0), foreign = make_file(0755, 65534);
	struct inode_note note;
	struct stat st;

	if (geteuid())
		SKIP("needs root to make files of others");
	REQUIRE(strict && any && roots >= 0 && foreign >= 0 && !fstat(foreign, &st));
	CHECK(!ownership__check(strict, roots, false));
	CHECK(ownership__check(strict, foreign, false) == -EACCES);
	CHECK(!ownership__check(any, foreign, false));
	/* root's file, mapped by a process of another user */
	CHECK(!ownership__note(foreign, getpid(), &note));
	CHECK(ownership__check(strict, foreign, false) == -EACCES);
	ownership__add(strict, &(struct inode_note){ st.st_dev, st.st_ino, st.st_uid });
	CHECK(!ownership__check(strict, foreign, false));
	ownership__free(strict);
	strict = ownership__new(true);
	CHECK(!fchown(foreign, 0, 0) && !ownership__check(strict, foreign, false));
	close(roots);
	close(foreign);
	ownership__free(strict);
	ownership__free(any);
}

TEST(no_user_takes_sites_from_others)
{
	struct ownership *o = ownership__new(true);
	int first = make_file(0755, 65534), last = make_file(0755, 65533);
	struct stat st;

	if (geteuid())
		SKIP("needs root to make files of others");
	REQUIRE(o && first >= 0 && last >= 0 && !fstat(first, &st));
	ownership__add(o, &(struct inode_note){ st.st_dev, st.st_ino, st.st_uid });
	for (u32 i = 1; i <= 66000; i++)
		ownership__add(o, &(struct inode_note){ ~0U, i, 65534 });
	REQUIRE(!fstat(last, &st));
	ownership__add(o, &(struct inode_note){ st.st_dev, st.st_ino, st.st_uid });
	CHECK(!ownership__check(o, last, false));
	CHECK(ownership__check(o, first, false) == -EACCES);
	close(first);
	close(last);
	ownership__free(o);
}

TEST_MAIN()
