/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of disks and memory: block I/O, major page faults, pages that enter the page cache, waits for memory.
 * Sources: include/linux/blk_types.h, blk-mq.h and include/trace/events/{block,filemap,vmscan,compaction}.h, Linux
 * 6.1 to 6.18.
 */
#pragma once

#include "core/event.h"

FAMILY(disk, 0x08, FAMILY_ON_REQUEST, "block I/O, major page faults, page-cache misses, waits for memory");

enum disk_op {
	DISK_READ = 0,
	DISK_WRITE = 1,
	DISK_FLUSH = 2, /* of the device's cache */
	DISK_DISCARD = 3, /* includes secure erase */
	DISK_WRITE_ZEROES = 4,
	DISK_OTHER = 5, /* zone commands */
};

enum disk_asker {
	DISK_BY_PROCESS = 0,
	DISK_BY_WRITEBACK = 1, /* a kernel thread writes pages that were changed earlier */
	DISK_BY_KERNEL = 2, /* a kernel thread for itself: journal, loop device, encryption */
};

/* How dev and ino were found. They are never guessed. */
enum disk_file_from {
	DISK_FILE_NONE = 0, /* unknown */
	DISK_FILE_PAGE_CACHE = 1, /* the pages of the I/O belong to this file */
	DISK_FILE_CALL = 2, /* the system call that requested the I/O has this file as its argument */
	DISK_FILE_METADATA = 3, /* the file system's own blocks; ino is that of the block device */
	DISK_FILE_MAPPING = 4, /* the address that faulted is in a mapping of this file */
};

enum disk_traits {
	DISK_SYNC = 1, /* a thread waits for it */
	DISK_META = 2, /* the file system marked it as metadata */
	DISK_FUA = 4, /* bypasses the device's cache (forced unit access) */
	DISK_PREFLUSH = 8, /* preceded by a flush of the device's cache */
	DISK_READAHEAD = 16, /* readahead */
};

struct disk_io {
	struct span span;
	/* Queued from start to issued, at the device from issued to time. */
	u64 issued UNIT(moment)
		DOC("when it was last issued to the device; 0: never, or not as a request of its own (an empty flush)");
	u64 sector DOC("first one, of 512 bytes, counted from the start of the whole disk");
	u64 bytes UNIT(bytes) DOC("of the request");
	u64 dev UNIT(hex) DOC("of the file: kernel encoding (major << 20 | minor)");
	u64 ino DOC("of the file");
	u32 disk_dev UNIT(hex) DOC("the disk: kernel encoding");
	char disk[16] DOC("the disk's name, such as nvme0n1");
	enum disk_op op;
	enum disk_asker asker DOC("which thread pid and tid name");
	enum disk_file_from file_from DOC("how dev and ino were found");
	u16 traits DOC("enum disk_traits, or-ed");
	u16 status DOC("0: done; else the kernel's BLK_STS_ number, 10 an I/O error");
	u16 bios DOC("pieces that were merged into the request");
	u16 own_bios DOC("of these, pieces that recorded threads submitted");
	u16 requeues DOC("times that the device returned it, to be issued again");
} EVENT(disk_io, 0x0801, "a block I/O request, from its submission to its completion");

struct disk_fault {
	struct span span;
	u64 address UNIT(hex) DOC("that the thread accessed");
	u64 dev UNIT(hex) DOC("of the file that is mapped there; 0: none, or not known");
	u64 ino DOC("of the file");
	u64 offset UNIT(bytes) DOC("in the file, of the page");
	enum disk_file_from file_from DOC("how dev and ino were found");
} EVENT(disk_fault, 0x0802, "a major page fault: the thread waited for a page to be read");

struct disk_cache {
	struct span span;
	u64 dev UNIT(hex);
	u64 ino;
	u64 missed UNIT(bytes) DOC("pages added to the cache to be read, readahead included");
	u64 written UNIT(bytes) DOC("pages added by a write call");
	u64 adds DOC("times that pages were added");
	enum disk_file_from file_from DOC("DISK_FILE_METADATA for a block device's own pages");
} EVENT(disk_cache, 0x0803, "the pages of one file that a process added to the page cache, summed over a second");

enum disk_stall_kind {
	DISK_RECLAIM = 0, /* the machine is short of memory */
	DISK_RECLAIM_CGROUP = 1, /* the thread's cgroup is at its limit */
	DISK_COMPACTION = 2, /* pages are moved to make room for a large one */
};

struct disk_stall {
	struct span span;
	u64 reclaimed DOC("pages freed; 0 for compaction");
	enum disk_stall_kind kind;
} EVENT(disk_stall, 0x0804, "a thread had to free or move memory itself before it could allocate some");

struct disk_task {
	struct span span;
	u64 major DOC("major page faults");
	u64 minor DOC("minor page faults");
	u64 read UNIT(bytes) DOC("read from disks on its behalf");
	u64 written UNIT(bytes) DOC("written to the page cache, or directly to disks");
} EVENT(disk_task, 0x0805, "what the kernel counted for a thread while it was traced, written at its end");

struct disk_file {
	struct event event;
	u64 dev UNIT(hex);
	u64 ino;
	char path[];
} EVENT(disk_file, 0x0806, "the name of a file, as seen from the root of its file system, before its first use");
