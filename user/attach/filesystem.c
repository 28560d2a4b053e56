// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attach/filesystem.h"

#include <stddef.h>
#include <sys/vfs.h>

/* include/uapi/linux/magic.h and, of those it does not list, the file systems' own headers */
static const struct {
	u32 magic;
	const char *name;
} remote[] = {
	{ 0x65735546, "FUSE" },	  { 0x6969, "NFS" },	      { 0xff534d42, "CIFS" },	{ 0xfe534d42, "SMB" },
	{ 0x517b, "SMB" },	  { 0x00c36400, "Ceph" },     { 0x5346414f, "AFS" },	{ 0x6b414653, "AFS" },
	{ 0x01021997, "9P" },	  { 0x73757245, "Coda" },     { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },
	{ 0x19830326, "BeeGFS" }, { 0x20030528, "OrangeFS" }, { 0xaad7aaea, "PanFS" },	{ 0x564c, "NCP" },
	{ 0xbacbacbc, "vmhgfs" }, { 0x786f4256, "vboxsf" },   { 0x0187, "autofs" },
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
