// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Local file systems are recognized by their type in /proc/PID/mountinfo, as virtiofs has FUSE's magic number. */
#include "process/filesystem.h"
#include "process/mapped.h"
#include "process/mounts.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *type_of(const char *line, u32 major, u32 minor)
{
	static struct mount m;

	return mount__parse(line, &m) && m.dev == ((u64)major << 20 | minor) ? m.type : "";
}

TEST(a_mount_is_identified_by_its_device)
{
	CHECK_TEXT(type_of("21 1 0:20 / / rw,relatime shared:1 - virtiofs rootfs rw\n", 0, 20), "virtiofs");
	CHECK_TEXT(type_of("22 21 0:21 / /proc rw shared:2 master:1 - proc proc rw\n", 0, 21), "proc");
	CHECK_TEXT(type_of("23 21 0:33 / /home/ann/\\040-\\040virtiofs rw - fuse.virtiofs host:/ rw,user_id=1\n", 0,
			   33),
		   "fuse.virtiofs");
	CHECK_TEXT(type_of("24 21 0:45 /env /opt/conda ro,relatime - nfs4 server:/conda ro,vers=4.2\n", 0, 45), "nfs4");
	CHECK_TEXT(type_of("25 21 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw\n", 259, 1), "ext4");
	CHECK_TEXT(type_of("28 21 0:51 / /last rw - lustre mgs:/fs rw", 0, 51), "lustre");
	CHECK_TEXT(type_of("27 21 0:50 / /short rw\n", 0, 50), "");
	CHECK_TEXT(type_of("- ext4", 0, 0), "");
}

TEST(only_a_real_virtiofs_is_local)
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
TEST(magic_numbers_are_known)
{
	CHECK(!strcmp(filesystem__remote(FILESYSTEM_FUSE), "FUSE") && !strcmp(filesystem__remote(0x6969), "NFS"));
	CHECK(!filesystem__remote(0xef53) && !filesystem__remote(0));
}

TEST(proc_is_found_in_the_processs_mounts)
{
	char type[64] = "";
	struct stat st;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK(filesystem__type(major(st.st_dev), minor(st.st_dev), 0, type, sizeof(type)) && !strcmp(type, "proc"));
	CHECK(!filesystem__remote_file(fd, 0, 0));
	close(fd);
}

/* Runs fn in a private mount namespace. Returns its result, 77 if it can't be run, 78 if it hung. */
static int in_own_mounts(int (*fn)(const char *folder))
{
	char folder[] = "/tmp/mounts-XXXXXX";
	int status = -1;
	pid_t pid;

	if (!mkdtemp(folder))
		return 77;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(77);
		alarm(20);
		_exit(fn(folder));
	}
	waitpid(pid, &status, 0);
	rmdir(folder);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 78;
}

static bool is_type(const char *path, const char *expected)
{
	char type[64] = "none";
	struct stat st;

	if (stat(path, &st))
		return false;
	mounts__type(0, major(st.st_dev), minor(st.st_dev), type, sizeof(type));
	if (strcmp(type, expected))
		printf("# %u:%u is of type %s\n", major(st.st_dev), minor(st.st_dev), type);
	return !strcmp(type, expected);
}

static int mount_one_after_the_other(const char *folder)
{
	bool right = !mount("t", folder, "tmpfs", 0, NULL) && is_type(folder, "tmpfs");
	u32 reads = mounts__reads();

	for (u32 i = 0; i < 100; i++)
		right &= is_type(folder, "tmpfs") && is_type("/proc", "proc");
	right &= mounts__reads() == reads;
	/* the next file system gets the device number that is free now */
	right &= !umount(folder) && !mount("r", folder, "ramfs", 0, NULL) && is_type(folder, "ramfs");
	return !right || mounts__reads() != reads + 1;
}

TEST(mounts_are_read_again_only_when_they_have_changed)
{
	if (geteuid())
		SKIP("needs root");
	CHECK(in_own_mounts(mount_one_after_the_other) == 0);
}

/* A mapped file of a local file system can be opened only by its path, which leads to a FUSE mount without a server. */
static int open_by_path(const char *folder)
{
	int device = open("/dev/fuse", O_RDWR), fd;
	struct mapping m = { .pid = (u32)getpid(), .start = 1, .end = 2 };
	const char *remote = NULL;
	char path[64], options[96];
	struct stat st;

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || stat("/proc", &st) || mount("f", folder, "fuse", 0, options))
		return 77;
	/* mounted in this namespace, and local */
	m.dev = (u64)major(st.st_dev) << 20 | minor(st.st_dev);
	snprintf(path, sizeof(path), "%s/folder/file", folder);
	m.path = path;
	fd = mapped__open(&m, MAPPED_ANY, false, &remote);
	return fd != -EREMOTE || !remote || strcmp(remote, "FUSE");
}

TEST(a_path_that_leads_to_a_remote_file_system_is_not_followed)
{
	int result;

	if (geteuid())
		SKIP("needs root");
	result = in_own_mounts(open_by_path);
	if (result == 77)
		SKIP("FUSE can't be mounted here");
	CHECK(result == 0);
}

TEST_MAIN()
