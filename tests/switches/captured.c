// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SONDE_TEST=captured:FILE: what a compromised process could try. docs/security.md lists what is refused. */
#include "core/python.h"
#include "record/parts.h"
#include "util/test_switch.h"

#include <bpf/bpf.h>
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

static void print(const char *what, long result)
{
	/* libbpf's and the attacher's functions return the error */
	fprintf(stderr, "captured: %s: %s\n", what,
		result >= 0 ? "done" : strerror(result == -1 ? errno : (int)-result));
}

/* file: one that the test has made */
static void try_files(const char *file)
{
	print("open /etc/shadow", open("/etc/shadow", O_RDONLY));
	print("open /etc/passwd", open("/etc/passwd", O_RDONLY));
	print("open /proc/1/maps", open("/proc/1/maps", O_RDONLY));
	print("create a file", open("/tmp/sonde-captured", O_CREAT | O_WRONLY, 0600));
	print("remove a file", unlink(file));
	print("run a program", execl("/bin/true", "true", NULL));
}

static void try_processes(void)
{
	print("signal init", syscall(SYS_kill, 1, 0));
	print("get a descriptor of init", syscall(SYS_pidfd_open, 1, 0));
	print("trace init", ptrace(PTRACE_SEIZE, 1, 0, 0));
	print("read another's memory", syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
	print("take over a descriptor", syscall(SYS_pidfd_getfd, 0, 0, 0));
}

static void try_kernel(void)
{
	char c = 'x';

	print("make a socket", socket(AF_INET, SOCK_STREAM, 0));
	print("make a netlink socket", socket(AF_NETLINK, SOCK_RAW, 0));
	print("load a program", syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0));
	print("find a map by its id", syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, NULL, 0));
	print("open a perf event", syscall(SYS_perf_event_open, NULL, -1, 0, -1, 0));
	print("become root", syscall(SYS_setresuid, 0, 0, 0));
	print("make a user namespace", unshare(CLONE_NEWUSER));
	print("mount", mount("none", "/proc", "tmpfs", 0, NULL));
	print("type into the terminal", ioctl(STDIN_FILENO, TIOCSTI, &c));
	print("become dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	print("add a key", syscall(SYS_add_key, "user", "sonde", "x", 1, -2));
}

/* Writes to maps directly, and by requests to the attacher for steering maps. */
static void try_maps(struct session *s)
{
	struct python_process process = { .at[0] = { (u64)(uintptr_t)s, (u64)(uintptr_t)s }, .n = 1 };
	struct python_layout layout = { .interpreters = 64U << 20 };
	struct python_file where = { .layout = PYTHON_LAYOUTS };
	struct python_file_key file = {};
	u32 key = 1, index = PYTHON_LAYOUTS - 1;

	print("write a map that it reads",
	      bpf_map_update_elem(session__map_fd(s, "python_processes"), &key, &process, BPF_ANY));
	print("write a map that it does not have",
	      bpf_map_update_elem(session__map_fd(s, "python_layouts"), &index, &layout, BPF_ANY));
	print("steer reads to a stack or heap", session__map_set(s, "python_processes", &key, &process, BPF_ANY));
	print("steer reads by a strange layout", session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	layout.interpreters = 8;
	print("set a layout", session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	layout.interpreters = 16;
	print("change a layout", session__map_set(s, "python_layouts", &index, &layout, BPF_ANY));
	print("steer reads by a strange file", session__map_set(s, "python_files", &file, &where, BPF_ANY));
	print("set the filter of processes", session__map_set(s, "processes", &key, &index, BPF_ANY));
}

void test_switch__captured(struct session *s, bool processes)
{
	static bool tried;
	char file[256];

	if (tried || !test_switch__text("captured", file, sizeof(file)))
		return;
	tried = s;
	try_files(file);
	if (processes)
		try_processes();
	try_kernel();
	if (s)
		try_maps(s);
}
