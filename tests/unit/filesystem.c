// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which file systems are local: by the types of /proc/PID/mountinfo, of which virtiofs has FUSE's number. */
#include "process/filesystem.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char mounts[] = "21 1 0:20 / / rw,relatime shared:1 - virtiofs rootfs rw\n"
			     "22 21 0:21 / /proc rw shared:2 master:1 - proc proc rw\n"
			     "23 21 0:33 / /home/ann/\\040-\\040virtiofs rw - fuse.virtiofs host:/ rw,user_id=1000\n"
			     "24 21 0:45 /env /opt/conda ro,relatime - nfs4 server:/conda ro,vers=4.2\n"
			     "25 21 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw\n"
			     "26 21 8:1 / /mnt rw - fuseblk /dev/sda1 rw\n"
			     "27 21 0:50 / /short rw\n"
			     "28 21 0:51 / /last rw - lustre mgs:/fs rw";

static const char *type_of(u32 major, u32 minor)
{
	static char type[64];

	return filesystem__find_type(mounts, major, minor, type, sizeof(type)) ? type : NULL;
}

TEST(a_mount_is_found_by_its_device)
{
	CHECK(!strcmp(type_of(0, 20), "virtiofs"));
	CHECK(!strcmp(type_of(0, 33), "fuse.virtiofs"));
	CHECK(!strcmp(type_of(0, 45), "nfs4"));
	CHECK(!strcmp(type_of(259, 1), "ext4"));
	CHECK(!strcmp(type_of(8, 1), "fuseblk"));
	CHECK(!strcmp(type_of(0, 51), "lustre"));
	/* a line without a type is not completed by the next one's */
	CHECK(!type_of(0, 50) && !type_of(1, 20));
}

TEST(virtiofs_is_local_and_what_calls_itself_that_is_not)
{
	CHECK(!filesystem__remote_type("virtiofs") && !filesystem__remote_type("ext4") &&
	      !filesystem__remote_type("overlay"));
	CHECK(!filesystem__remote_type("") && !filesystem__remote_type("nfsd") && !filesystem__remote_type("fusectl"));
	CHECK(!strcmp(filesystem__remote_type("fuse.virtiofs"), "FUSE"));
	CHECK(!strcmp(filesystem__remote_type("fuseblk"), "FUSE") && !strcmp(filesystem__remote_type("fuse"), "FUSE"));
	CHECK(!strcmp(filesystem__remote_type("nfs"), "NFS") && !strcmp(filesystem__remote_type("nfs4"), "NFS"));
	CHECK(!strcmp(filesystem__remote_type("lustre"), "Lustre") && !strcmp(filesystem__remote_type("9p"), "9P"));
}

/* The magic number that FUSE and virtiofs share, and the others. */
TEST(numbers_are_known)
{
	CHECK(!strcmp(filesystem__remote(FILESYSTEM_FUSE), "FUSE") && !strcmp(filesystem__remote(0x6969), "NFS"));
	CHECK(!filesystem__remote(0xef53) && !filesystem__remote(0));
}

TEST(proc_is_found_in_the_own_mounts)
{
	char type[64] = "";
	struct stat st;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK(filesystem__type(major(st.st_dev), minor(st.st_dev), 0, type, sizeof(type)) && !strcmp(type, "proc"));
	CHECK(!filesystem__remote_file(fd, 0));
	close(fd);
}

TEST_MAIN()
