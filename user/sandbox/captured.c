// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

void captured__print(const char *what, long result)
{
	/* libbpf's and the attacher's functions return the error */
	fprintf(stderr, "captured: %s: %s\n", what,
		result >= 0 ? "done" : strerror(result == -1 ? errno : (int)-result));
}

void captured__try_files(void)
{
	captured__print("open /etc/shadow", open("/etc/shadow", O_RDONLY));
	captured__print("open /etc/passwd", open("/etc/passwd", O_RDONLY));
	captured__print("open /proc/1/maps", open("/proc/1/maps", O_RDONLY));
	captured__print("create a file", open("/tmp/sonde-captured", O_CREAT | O_WRONLY, 0600));
	captured__print("remove a file", unlink("/etc/passwd"));
	captured__print("run a program", execl("/bin/true", "true", NULL));
}

static void try_processes(void)
{
	captured__print("signal init", syscall(SYS_kill, 1, 0));
	captured__print("get a descriptor of init", syscall(SYS_pidfd_open, 1, 0));
	captured__print("trace init", ptrace(PTRACE_SEIZE, 1, 0, 0));
	captured__print("read another's memory", syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
	captured__print("take over a descriptor", syscall(SYS_pidfd_getfd, 0, 0, 0));
}

void captured__try_kernel(void)
{
	char c = 'x';

	captured__print("make a socket", socket(AF_INET, SOCK_STREAM, 0));
	captured__print("make a netlink socket", socket(AF_NETLINK, SOCK_RAW, 0));
	captured__print("load a program", syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0));
	captured__print("find a map by its id", syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, NULL, 0));
	captured__print("open a perf event", syscall(SYS_perf_event_open, NULL, -1, 0, -1, 0));
	captured__print("become root", syscall(SYS_setresuid, 0, 0, 0));
	captured__print("make a user namespace", unshare(CLONE_NEWUSER));
	captured__print("mount", mount("none", "/proc", "tmpfs", 0, NULL));
	captured__print("type into the terminal", ioctl(STDIN_FILENO, TIOCSTI, &c));
	captured__print("become dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	captured__print("add a key", syscall(SYS_add_key, "user", "sonde", "x", 1, -2));
}

void captured__try_calls(void)
{
	captured__try_files();
	try_processes();
	captured__try_kernel();
}
