// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process/filesystem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* include/uapi/linux/magic.h and, of those it does not list, the file systems' own headers */
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
	for (u32 i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if (remote[i].magic == (u32)magic)
			return remote[i].name;
	return NULL;
}

u64 filesystem__magic(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) ? 0 : (u64)fs.f_type;
}

/* As /proc/filesystems has them; FUSE's have a suffix that its server chooses ("fuse.sshfs"). */
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

	for (u32 i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].type) == len && !strncmp(types[i].type, type, len))
			return types[i].name;
	return NULL;
}

/* "ID PARENT MAJ:MIN ROOT WHERE OPTIONS [FIELDS..] - TYPE SOURCE SUPER-OPTIONS": blanks within a field are escaped. */
bool filesystem__find_type(const char *mounts, u32 major, u32 minor, char *type, size_t len)
{
	for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *end = line + strcspn(line, "\n"), *dash = strstr(line, " - ");
		u32 maj, min;

		if (!dash || dash > end || sscanf(line, "%*u %*u %u:%u", &maj, &min) != 2 || maj != major ||
		    min != minor)
			continue;
		snprintf(type, len, "%.*s", (int)strcspn(dash + 3, " \n"), dash + 3);
		return true;
	}
	return false;
}

static bool find_in(const char *path, u32 major, u32 minor, char *type, size_t len)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (f && !found && getline(&line, &size, f) > 0)
		found = filesystem__find_type(line, major, minor, type, len);
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool filesystem__type(u32 major, u32 minor, u32 pid, char *type, size_t len)
{
	char path[48];

	if (find_in("/proc/self/mountinfo", major, minor, type, len))
		return true;
	snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	return pid && find_in(path, major, minor, type, len);
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
