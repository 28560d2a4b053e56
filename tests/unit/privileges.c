// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operations that are refused to a recording's processes. Each attempt is made in a child process. */
#include "sandbox/privileges.h"
#include "sandbox/syscalls.h"
#include "test.h"
#include "util/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum role { ATTACHER, WORKER, OBSERVER, READER, INJECTOR };

/*
 * The errno that fn gets in that role, 0 if it succeeds, -1 if the role can't be entered. refused: the call that its
 * filter refused.
 */
struct outcome {
	int err, refused;
	char lacks[256];
};

static int take(enum role role, struct outcome *o)
{
	switch (role) {
	case ATTACHER:
		return privileges__attacher(false, false, o->lacks, sizeof(o->lacks));
	case OBSERVER:
		return privileges__observer();
	case READER:
		return privileges__reader(false);
	case INJECTOR:
		if (privileges__injector(true))
			return -1;
		return privileges__filter_injector();
	default:
		return privileges__worker(o->lacks, sizeof(o->lacks));
	}
}

static struct outcome attempt(enum role role, long (*fn)(void))
{
	struct outcome o = { .err = -1 };
	int fds[2], status;
	pid_t pid;

	fflush(stdout);
	if (pipe(fds))
		return o;
	pid = fork();
	if (!pid) {
		if (take(role, &o))
			_exit(1);
		errno = 0;
		o.err = fn() < 0 ? errno : 0;
		o.refused = syscalls__refused();
		_exit(write(fds[1], &o, sizeof(o)) != sizeof(o));
	}
	close(fds[1]);
	if (read(fds[0], &o, sizeof(o)) != sizeof(o))
		o.err = -1;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return o;
}

static long open_shadow(void)
{
	return open("/etc/shadow", O_RDONLY);
}

static long write_passwd(void)
{
	return open("/etc/passwd", O_WRONLY);
}

static long write_memory(void)
{
	struct open_how how = { .flags = O_RDWR };

	return syscall(SYS_openat2, AT_FDCWD, "/proc/1/mem", &how, sizeof(how));
}

static long write_shadow(void)
{
	struct open_how how = { .flags = O_RDWR };

	return syscall(SYS_openat2, AT_FDCWD, "/etc/shadow", &how, sizeof(how));
}

/* The flags of openat2 are in memory, which a filter can't read. */
static long create_by_openat2(void)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 0600 };

	return syscall(SYS_openat2, AT_FDCWD, "/tmp/sonde-test-of-openat2", &how, sizeof(how));
}

static long create(void)
{
	return open("/tmp/sonde-test-of-openat", O_CREAT | O_RDONLY, 0600);
}

static long make_folder(void)
{
	return mkdir("/tmp/sonde-test-of-mkdir", 0700);
}

static long make_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long trace_parent(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), 0, 0);
}

static long write_other(void)
{
	return syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0);
}

static long signal_parent(void)
{
	return syscall(SYS_kill, getppid(), 0);
}

static long run_program(void)
{
	return execl("/bin/true", "true", NULL);
}

static long load_program(void)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER };

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static long become_root(void)
{
	return syscall(SYS_setresuid, 0, 0, 0);
}

static long leave_namespaces(void)
{
	return unshare(CLONE_NEWUSER);
}

static long become_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long do_nothing(void)
{
	return 0;
}

/* Operations that an uncompromised program needs. */
static long start_child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(3);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 0 : -1;
}

static long read_maps(void)
{
	return open("/proc/self/maps", O_RDONLY);
}

#ifdef __SANITIZE_ADDRESS__
#define FILTERED false /* sanitizers need more system calls than the filter otherwise allows */
#else
#define FILTERED true
#endif

static bool is_refused(enum role role, long (*fn)(void))
{
	struct outcome o = attempt(role, fn);

	if (o.err <= 0)
		printf("# err %d, refused %d, lacks '%s'\n", o.err, o.refused, o.lacks);
	return o.err > 0;
}

TEST(an_attacher_only_reads_and_attaches)
{
	static long (*const attempts[])(void) = { write_shadow, write_memory, make_socket,	run_program,
						  become_root,	load_program, leave_namespaces, signal_parent };

	if (geteuid() || !FILTERED)
		SKIP("needs root and no sanitizer");
	CHECK(attempt(ATTACHER, do_nothing).err == 0);
	CHECK(attempt(ATTACHER, start_child).err == 0);
	CHECK(attempt(ATTACHER, read_maps).err == 0);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		CHECK(is_refused(ATTACHER, attempts[i]));
	CHECK(is_refused(ATTACHER, create_by_openat2) && is_refused(ATTACHER, create) &&
	      is_refused(ATTACHER, make_folder));
	CHECK(is_refused(ATTACHER, write_passwd) && is_refused(ATTACHER, trace_parent) &&
	      is_refused(ATTACHER, write_other) && is_refused(ATTACHER, become_dumpable));
}

TEST(a_worker_has_no_files_and_no_network)
{
	static long (*const attempts[])(void) = { open_shadow,	  write_passwd,	    write_shadow,  make_socket,
						  trace_parent,	  write_other,	    run_program,   load_program,
						  become_root,	  leave_namespaces, signal_parent, read_maps,
						  become_dumpable };

	if (geteuid() || !FILTERED)
		SKIP("needs root and no sanitizer");
	CHECK(attempt(WORKER, do_nothing).err == 0);
	CHECK(attempt(WORKER, start_child).err == 0);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		CHECK(is_refused(WORKER, attempts[i]));
}

/* report, info, export, list --resolve and dump, also of an unprivileged user */
TEST(a_reader_has_only_its_open_files)
{
	static long (*const attempts[])(void) = { open_shadow,	    write_passwd,   write_shadow, trace_parent,
						  write_other,	    run_program,    load_program, become_root,
						  make_socket,	    read_maps,	    write_memory, signal_parent,
						  leave_namespaces, become_dumpable };

	if (!FILTERED)
		SKIP("a sanitizer needs more system calls");
	CHECK(attempt(READER, do_nothing).err == 0);
	CHECK(attempt(READER, start_child).err == 0);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		CHECK(is_refused(READER, attempts[i]));
}

/* sonde doctor while it inspects processes. */
TEST(an_observer_writes_no_other_process)
{
	if (geteuid())
		SKIP("needs root");
	CHECK(attempt(OBSERVER, do_nothing).err == 0);
	CHECK(attempt(OBSERVER, read_maps).err == 0);
	CHECK(is_refused(OBSERVER, write_passwd) && is_refused(OBSERVER, write_shadow));
	CHECK(is_refused(OBSERVER, write_memory) && is_refused(OBSERVER, become_root));
	if (FILTERED)
		CHECK(is_refused(OBSERVER, make_socket) && is_refused(OBSERVER, run_program) &&
		      is_refused(OBSERVER, signal_parent) && is_refused(OBSERVER, load_program) &&
		      is_refused(OBSERVER, create_by_openat2) && is_refused(OBSERVER, create) &&
		      is_refused(OBSERVER, make_folder));
}

/* The process that loads the shim: it writes a process's memory through a file, and can't create files. */
TEST(an_injector_creates_no_files)
{
	if (geteuid() || !FILTERED)
		SKIP("needs root and no sanitizer");
	CHECK(attempt(INJECTOR, do_nothing).err == 0);
	CHECK(attempt(INJECTOR, read_maps).err == 0);
	CHECK(is_refused(INJECTOR, create_by_openat2) && is_refused(INJECTOR, create) &&
	      is_refused(INJECTOR, make_folder));
	CHECK(is_refused(INJECTOR, make_socket) && is_refused(INJECTOR, run_program) &&
	      is_refused(INJECTOR, load_program) && is_refused(INJECTOR, leave_namespaces));
}

/* The caller ends a recording with the call's name. */
TEST(a_refused_call_is_reported)
{
	char name[64];
	struct outcome o;

	if (geteuid() || !FILTERED)
		SKIP("needs root and no sanitizer");
	o = attempt(WORKER, make_socket);
	CHECK(o.err == EPERM && o.refused == SYS_socket);
	CHECK(!strcmp(syscalls__name(o.refused, name, sizeof(name)), "socket"));
	/* libraries try to open files and work without them: not a fault */
	o = attempt(WORKER, open_shadow);
	CHECK(o.err == EACCES && o.refused == -1);
	CHECK(attempt(ATTACHER, do_nothing).refused == -1);
}

/* A child that has only `room` bytes of memory left to build the role's filter. */
static int confine_without_memory(size_t room)
{
	struct rlimit none = { 0, 0 };
	void *volatile kept = malloc(room);
	void *volatile used;
	pid_t pid;
	int status = 0;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_DATA, &none);
		for (size_t size = 1 << 20; size >= 16; size /= 2)
			while ((used = malloc(size)))
				;
		free(kept);
		_exit(-syscalls__confine(SYSCALLS_READER));
	}
	free(kept);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : status;
}

/* libseccomp 2.5.4 crashes when an allocation fails, sometimes much later. */
TEST(without_memory_for_a_filter_there_is_an_error)
{
	if (SANITIZED)
		SKIP("a sanitized build has an allocator of its own");
	for (size_t room = 16 << 10; room <= 256 << 10; room += 8 << 10)
		CHECK(confine_without_memory(room) == -ENOMEM);
}

TEST_MAIN()
