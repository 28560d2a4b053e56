/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files and sockets that descriptors refer to: events of the families that observe how threads use them (syscall,
 * sample).
 */
#pragma once

#include "core/event.h"

/* Added to `nr` for calls by an ABI other than the machine's own. */
#define SYSCALL_X32 0x4000
#define SYSCALL_32  0x8000

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
	u64 peer0 UNIT(hex) DOC("the peer's address, likewise");
	u64 peer1 UNIT(hex);
	u32 file DOC("its id in the field `file` of this process's calls");
	u32 dev UNIT(hex) DOC("device, kernel encoding (major << 20 | minor)");
	enum syscall_file_kind kind;
	u16 family DOC("address family of a socket (AF_INET 2, AF_INET6 10, AF_UNIX 1)");
	u16 type DOC("of a socket (SOCK_STREAM 1, SOCK_DGRAM 2)");
	u16 local_port;
	u16 peer_port;
	u32 peer_pid UNIT(task)
		DOC("UNIX socket: the process that connected, listened or made the pair (SO_PEERCRED), 0: not known");
	u64 other_end UNIT(hex) DOC(
		"id of the other end of a pipe or connection, or of a file's locks (syscall_peer names the processes); 0: none");
	u32 net DOC("of an IP socket: inode number of its network namespace");
	char path[] DOC(
		"seen from the file system's own root when the file was first used; a UNIX socket's name, or its peer's");
} EVENT(syscall_file, 0x0702, "the file or socket that a descriptor refers to, once per process");

struct syscall_peer {
	struct event event;
	u64 other_end UNIT(hex) DOC("as the field of syscall_file has it; 0: the process listens at local_port");
	u64 local0 UNIT(hex) DOC("of a listener, as in syscall_file; 0: at all addresses");
	u64 local1 UNIT(hex);
	u16 local_port DOC("of a listener, else 0");
	char comm[16] DOC("name of the process, whose events the trace may lack");
	u16 type DOC("of a listener, as in syscall_file");
	u32 net DOC("of a listener, as in syscall_file");
} EVENT(syscall_peer, 0x0705,
	"one of the first 16 processes that had the other end of a pipe or connection open, held a lock of a file that others waited for, or listened at a port, when tracing ended; or a process that traced a followed one");

struct syscall_title {
	struct event event;
	char text[];
} EVENT(syscall_title, 0x0706,
	"the title that the process at the other end of a connection had given itself, when tracing ended; none with --no-args");
