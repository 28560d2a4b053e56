// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/filesystem.h"

#include "process/mounts.h"
#include "util/array.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

u64 filesystem__magic(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) ? 0 : (u64)fs.f_type;
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

const char *filesystem__remote_file(int fd, u32 pid)
{
	struct statx st = {};
	char type[64];

	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) &&
	    filesystem__type(st.stx_dev_major, st.stx_dev_minor, pid, type, sizeof(type)))
		return filesystem__remote_type(type);
	return filesystem__remote(filesystem__magic(fd));
}
