/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of system calls. docs/syscall.md is the essay. Numbers and names: the
 * kernel headers of the machine that sonde was built on (scripts/syscalls.sh), which
 * the trace carries as the values of enum syscall_nr, so that it reads the same elsewhere.
 */
#ifndef SONDE_SYSCALL_H
#define SONDE_SYSCALL_H

#include "core/event.h"
#include "syscall_nr.h"

FAMILY(syscall, 0x07, FAMILY_ASKED, "system calls: what each took, moved and returned (osrt in -t)");

/* What `nr` counts from for calls by another way than the machine's own. */
#define SYSCALL_X32 0x4000
#define SYSCALL_32  0x8000

struct syscall {
	/* ret: negative is -errno; -512 to -516 is a call that a signal interrupted, see docs/syscall.md */
	struct call call;
	enum syscall_nr nr DOC("which call; from 0x8000 on 32-bit calls, from 0x4000 on those of x32");
	u32 file DOC("event syscall_file of its descriptor, 0: has none");
	u64 arg0 UNIT(hex);
	u64 arg1 UNIT(hex);
	u64 arg2 UNIT(hex);
	u64 arg3 UNIT(hex);
	u64 arg4 UNIT(hex);
	u64 arg5 UNIT(hex);
	u64 bytes UNIT(bytes) DOC("read, written, sent or received");
	u32 sleeps DOC("how often the thread gave up its CPU to wait");
	char path[] DOC("as the caller wrote it, its first 191 bytes");
} EVENT(syscall, 0x0701, "a system call");

enum syscall_file_kind {
	SYSCALL_FILE_PATH = 0,
	SYSCALL_FILE_SOCKET = 1,
	SYSCALL_FILE_PIPE = 2,
	SYSCALL_FILE_ANON = 3, /* eventfd, epoll, timerfd, ...: path is the kernel's name for it */
};

struct syscall_file {
	struct event event;
	u64 ino DOC("inode number");
	u64 local0 UNIT(hex)
		DOC("socket's address as in a packet: IPv4 in the lowest four bytes, or the first half of an IPv6 one");
	u64 local1 UNIT(hex) DOC("second half of an IPv6 address");
	u64 peer0 UNIT(hex) DOC("the other side's, likewise");
	u64 peer1 UNIT(hex);
	u32 file DOC("what the field file of this process's calls holds");
	u32 dev UNIT(hex) DOC("device, kernel encoding (major << 20 | minor)");
	enum syscall_file_kind kind;
	u16 family DOC("address family of a socket (AF_INET 2, AF_INET6 10, AF_UNIX 1)");
	u16 type DOC("of a socket (SOCK_STREAM 1, SOCK_DGRAM 2)");
	u16 local_port;
	u16 peer_port;
	char path[] DOC(
		"seen from the file system's own root when the file was first used; a UNIX socket's name, or its peer's");
} EVENT(syscall_file, 0x0702, "what a descriptor stands for, once a process");

struct syscall_short {
	struct event event;
	u64 since UNIT(moment) DOC("they were made between this and time");
	u64 count DOC("calls");
	u64 total UNIT(ns) DOC("their time together");
	u64 errors DOC("of these, calls that returned an error");
	enum syscall_nr nr;
} EVENT(syscall_short, 0x0703,
	"calls shorter than --syscall-threshold of one process in this time, which have no event of their own");

struct syscall_threshold {
	struct event event;
	u64 threshold UNIT(ns) DOC("calls shorter than this are only counted");
} EVENT(syscall_threshold, 0x0704, "the trace leaves short calls out");

#endif
