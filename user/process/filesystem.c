// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/filesystem.h"

#include "process/mounts.h"
#include "util/array.h"
#include "util/file.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* include/uapi/linux/magic.h, and the file systems' own headers */
static const struct {
	u32 magic;
	const char *name;
} remote[] = {
	{ FILESYSTEM_FUSE, "FUSE" }, { 0x6969, "NFS" },		 { 0xff534d42, "CIFS" },   { 0xfe534d42, "SMB" },
	{ 0x517b, "SMB" },	     { 0x00c36400, "Ceph" },	 { 0x5346414f, "AFS" },	   { 0x6b414653, "AFS" },
	{ 0x01021997, "9P" },	     { 0x73757245, "Coda" },	 { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },
	{ 0x19830326, "BeeGFS" },    { 0x20030528, "OrangeFS" }, { 0xaad7aaea, "PanFS" },  { 0x564c, "NCP" },
	{ 0xbacbacbc, "vmhgfs" },    { 0x786f4256, "vboxsf" },	 { 0x0187, "autofs" },
};

const char *filesystem__remote(u64 magic)
{
	for (u32 i = 0; i < ARRAY_LEN(remote); i++)
		if (remote[i].magic == (u32)magic)
			return remote[i].name;
	return NULL;
}

/* Types as in /proc/filesystems; those of FUSE have a suffix that the server chooses ("fuse.sshfs"). */
static const struct {
	const char *type, *name;
} types[] = {
	{ "fuse", "FUSE" },	{ "fuseblk", "FUSE" },	{ "nfs", "NFS" },	 { "nfs4", "NFS" },
	{ "cifs", "CIFS" },	{ "smb3", "SMB" },	{ "smbfs", "SMB" },	 { "ceph", "Ceph" },
	{ "afs", "AFS" },	{ "9p", "9P" },		{ "coda", "Coda" },	 { "lustre", "Lustre" },
	{ "gpfs", "GPFS" },	{ "beegfs", "BeeGFS" }, { "pvfs2", "OrangeFS" }, { "orangefs", "OrangeFS" },
	{ "panfs", "PanFS" },	{ "ncpfs", "NCP" },	{ "ncp", "NCP" },	 { "vmhgfs", "vmhgfs" },
	{ "vboxsf", "vboxsf" }, { "autofs", "autofs" },
};

const char *filesystem__remote_type(const char *type)
{
	size_t len = strcspn(type, ".");

	for (u32 i = 0; i < ARRAY_LEN(types); i++)
		if (strlen(types[i].type) == len && !strncmp(types[i].type, type, len))
			return types[i].name;
	return NULL;
}

bool filesystem__type(u32 major, u32 minor, u32 pid, char *type, size_t len)
{
	return mounts__type(0, major, minor, type, len) || (pid && mounts__type(pid, major, minor, type, len));
}

/* The mount of a descriptor, which may be an O_PATH one; no file system is asked. 0: unknown. */
static u64 mount_of(int fd)
{
	char path[48];
	u64 id = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file__scan(path, 1, "mnt_id: %llu", &id);
	return id;
}

/* All memfds and shared memory of the kernel are on a mount that no table lists. */
static bool is_memory(u64 mount)
{
	int fd = memfd_create("sonde", MFD_CLOEXEC);
	bool same = fd >= 0 && mount_of(fd) == mount;

	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * Was the process's mount namespace made by root, or by the user of this process? Its file systems may be anything
 * that the maker of its user namespace wants, also overlayfs above FUSE.
 */
static bool is_trusted_namespace(u32 pid)
{
	char path[48];
	uid_t owner = (uid_t)-1;
	int mounts, users;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	if (users >= 0 && ioctl(users, NS_GET_OWNER_UID, &owner))
		owner = (uid_t)-1;
	if (users >= 0)
		close(users);
	if (mounts >= 0)
		close(mounts);
	return !owner || owner == getuid();
}

const char *filesystem__remote_file(int fd, u32 pid, u64 dev)
{
	u64 id = mount_of(fd);
	struct mount m;
	char type[64];
	const char *remote;

	if (mounts__by_id(0, id, &m))
		return filesystem__remote_type(m.type);
	if (pid && mounts__by_id(pid, id, &m)) {
		remote = filesystem__remote_type(m.type);
		/* a file system that is mounted here, too, and by a mount of its own in the process's namespace */
		if (remote || mounts__type(0, m.dev >> 20, m.dev & 0xfffff, type, sizeof(type)))
			return remote;
		return is_trusted_namespace(pid) ? NULL : "a mount that another user made";
	}
	/* unmounted, or not below the process's root */
	if (dev && mounts__type(0, dev >> 20, dev & 0xfffff, type, sizeof(type)))
		return filesystem__remote_type(type);
	return is_memory(id) ? NULL : "an unmounted file system";
}
