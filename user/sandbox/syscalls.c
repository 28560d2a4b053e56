// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sandbox/syscalls.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <ucontext.h>

#include "util/sanitizer.h"
#include "util/test_switch.h"

/* libseccomp 2.5.4 crashes where it gets no memory. A filter takes 0.3 MiB of it. */
#define FILTER_ROOM (1 << 20)

#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* 64-bit x86 only: from Linux 6.11 (6.18) on the return (entry) of a probed function makes this call. */
#define X86_URETPROBE 335
#define X86_UPROBE    336

/*
 * Calls that use descriptors, memory, time and signals that the process has. By name, because libseccomp knows the
 * numbers of other kernels, too.
 */
static const char *const common[] = {
	"read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev", "lseek", "close",
	"close_range", "fstat", "newfstatat", "statx", "fstatfs", "fcntl", "dup", "dup2", "dup3", "getdents64",
	"ftruncate", "fallocate", "fadvise64", "fsync", "fdatasync", "readlink", "readlinkat", "poll", "ppoll",
	"select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "sendmsg",
	"recvmsg", "sendto", "recvfrom", "shutdown", "pipe", "pipe2", "eventfd2", "mmap", "munmap", "mremap",
	"mprotect", "madvise", "msync", "mincore", "brk", "memfd_create", "futex", "futex_waitv", "set_robust_list",
	"get_robust_list", "rseq", "membarrier", "set_tid_address", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend", "sigaltstack", "restart_syscall", "getpid", "getppid",
	"gettid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgrp", "getpgid",
	"getsid", "capget", "capset", "getrusage", "times", "getrlimit", "setrlimit", "clock_gettime", "clock_getres",
	"clock_nanosleep", "nanosleep", "gettimeofday", "time", "alarm", "setitimer", "sched_yield",
	"sched_setscheduler", "sched_getaffinity", "getcpu", "sysinfo", "uname", "umask", "getrandom", "fork", "vfork",
	"wait4", "waitid", "tgkill", "exit", "exit_group",
#ifdef __SANITIZE_ADDRESS__
	/* the leak checker reads the process's maps and stops its threads from another process that it creates */
	"open", "openat", "access", "faccessat", "faccessat2", "stat", "lstat", "getdents", "ptrace", "clone", "prctl",
	"prlimit64", "personality", "sched_setaffinity", "arch_prctl", "process_vm_readv", "ioctl", "unlink",
#endif
	NULL
};

static const char *const worker[] = { "kill", "inotify_add_watch", "inotify_rm_watch", NULL };

/* getxattr: does a file have an access control list (attach/source_file.c)? */
static const char *const attacher[] = { "kill", "pidfd_send_signal", "socketpair", "getxattr", NULL };

static const char *const perf[] = { "perf_event_open", NULL };

/* Of a process's namespaces: who made them (process/filesystem.c, util/account.c). */
static const unsigned int namespaces[] = { NS_GET_USERNS, NS_GET_PARENT, NS_GET_OWNER_UID };

/* Calls that look a file up by its path and do not open it. */
static const char *const lookups[] = { "access", "faccessat", "faccessat2", "stat", "lstat", NULL };

static const char *const observer[] = { "pidfd_open", "kcmp", "process_vm_readv", NULL };

/* kill: for a child that examines a process and hangs. */
static const char *const injector[] = {
	"ptrace", "sched_getscheduler", "setpriority", "kill", "pidfd_send_signal", NULL
};

/*
 * Calls that open or change files by their paths; refused with EACCES. A role that may open files for reading, or
 * existing files, has openat (add_opens): the flags of openat2 are in memory, where a filter can't read them.
 */
static const char *const opens[] = { "open", "openat", NULL };
static const char *const paths[] = { "openat2", "creat",     "access",	 "faccessat", "faccessat2", "stat",
				     "lstat",	"statfs",    "mkdir",	 "mkdirat",   "unlink",	    "unlinkat",
				     "rmdir",	"rename",    "renameat", "renameat2", "link",	    "linkat",
				     "symlink", "symlinkat", "chdir",	 "chmod",     "fchmodat",   "chown",
				     "lchown",	"fchownat",  "getcwd",	 "getdents",  NULL };

/* Refused with EPERM: a child that gives up more than it has makes these calls. */
static const char *const useless[] = { "setresuid",	    "setresgid",   "setuid", "setgid",
				       "setgroups",	    "setpgid",	   "setsid", "pidfd_open",
				       "sched_setaffinity", "setpriority", "mlock",  NULL };

static volatile sig_atomic_t refused = -1;

static void on_refused(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	if (refused < 0)
		refused = info->si_syscall;
	/* the result of the refused call */
	c->uc_mcontext.gregs[REG_RAX] = -EPERM;
}

int syscalls__refused(void)
{
	return refused;
}

char *syscalls__name(int number, char *buf, size_t len)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

	snprintf(buf, len, "%s", name ? name : "");
	if (!name)
		snprintf(buf, len, "number %d", number);
	free(name);
	return buf;
}

/* A name that this libseccomp or this machine does not have is skipped: the call stays refused. */
static int add(scmp_filter_ctx ctx, u_int32_t action, const char *const *names)
{
	int err = 0;

	for (; *names && !err; names++) {
		int nr = seccomp_syscall_resolve_name(*names);

		if (nr == __NR_SCMP_ERROR || nr < 0)
			continue;
		err = seccomp_rule_add(ctx, action, nr, 0);
	}
	return err;
}

/* Adds a rule for a call with this value in certain bits of an argument. */
static int add_bits(scmp_filter_ctx ctx, u_int32_t action, int nr, unsigned int arg, scmp_datum_t bits,
		    scmp_datum_t value)
{
	return nr < 0 ? 0 : seccomp_rule_add(ctx, action, nr, 1, SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, value));
}

static int add_values(scmp_filter_ctx ctx, int nr, unsigned int arg, const unsigned int *values, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = add_bits(ctx, SCMP_ACT_ALLOW, nr, arg, 0xffffffff, values[i]);
	return err;
}

#define ADD_VALUES(ctx, nr, arg, list) add_values(ctx, nr, arg, list, ARRAY_LEN(list))

/*
 * New threads and children, in the existing namespaces. glibc falls back from clone3, whose flags a filter can't
 * read.
 */
static int add_clone(scmp_filter_ctx ctx)
{
	int err = 0;

	if (!SANITIZED)
		err = add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 0, NEW_NAMESPACES, 0);
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return err;
}

#define PR_SET_VMA_ 0x53564d41 /* linux/prctl.h: newer C libraries name their memory mappings */

static int add_own_state(scmp_filter_ctx ctx)
{
	static const unsigned int prctls[] = { PR_SET_NAME,	    PR_GET_NAME,     PR_SET_PDEATHSIG,
					       PR_SET_NO_NEW_PRIVS, PR_GET_DUMPABLE, PR_CAPBSET_READ,
					       PR_GET_SECCOMP,	    PR_SET_SECCOMP,  PR_GET_SECUREBITS,
					       PR_SET_VMA_ };
	int err = SANITIZED ? 0 : ADD_VALUES(ctx, SCMP_SYS(prctl), 0, prctls);

	/* only its own limits */
	if (!err && !SANITIZED)
		err = add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 0, 0xffffffff, 0);
	return err;
}

static int add_terminal(scmp_filter_ctx ctx)
{
	/* without TIOCSTI, which simulates typed input */
	/* the last four: TCGETS2, TCSETS2 and similar ones of <asm/termbits.h>, which glibc uses from 2.42 on */
	static const unsigned int terminal[] = { TCGETS,     TCSETS,	 TCSETSW,   TCSETSF,  TCFLSH,
						 TCSBRK,     TIOCGWINSZ, TIOCGPGRP, FIONREAD, 0x802c542a,
						 0x402c542b, 0x402c542c, 0x402c542d };

	return SANITIZED ? 0 : ADD_VALUES(ctx, SCMP_SYS(ioctl), 1, terminal);
}

/* Reads maps and statistics, and runs BPF programs by BPF_PROG_TEST_RUN. */
static int add_worker(scmp_filter_ctx ctx)
{
	static const unsigned int commands[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_PROG_TEST_RUN,
						 BPF_OBJ_GET_INFO_BY_FD };
	int err = add(ctx, SCMP_ACT_ALLOW, worker);

	if (!err)
		err = ADD_VALUES(ctx, SCMP_SYS(bpf), 0, commands);
	if (!err)
		err = add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 0, 0xffffffff, AF_UNIX);
	return err ? err : add_terminal(ctx);
}

/* Opening files with none of these flags. */
static int add_opens(scmp_filter_ctx ctx, unsigned int flags)
{
	int err = SANITIZED ? 0 : add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, flags, 0);

	return err || SANITIZED ? err : add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, flags, 0);
}

#define OPENS_TO_WRITE (O_ACCMODE | O_CREAT | O_TRUNC)

/* Reads processes through /proc. kills: its list allows kill already. */
static int add_observer(scmp_filter_ctx ctx, bool kills)
{
	int err = add(ctx, SCMP_ACT_ALLOW, observer);

	/* for the child that parses files; it is killed when it does not answer */
	if (!err)
		err = add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 0, 0xffffffff, AF_UNIX);
	if (!err && !kills)
		err = add_bits(ctx, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1, 0xffffffff, SIGKILL);
	if (!err && !SANITIZED)
		err = ADD_VALUES(ctx, SCMP_SYS(ioctl), 1, namespaces);
	return err ? err : add(ctx, SCMP_ACT_ALLOW, lookups);
}

static int add_reader(scmp_filter_ctx ctx, enum syscalls_role role)
{
	/* a trace without an end that is locked is still being recorded */
	static const unsigned int locks[] = { LOCK_SH | LOCK_NB, LOCK_UN };
	int err = add_terminal(ctx);

	if (!err)
		err = ADD_VALUES(ctx, SCMP_SYS(flock), 1, locks);
	if (!err && role != SYSCALLS_READER)
		err = add_opens(ctx, OPENS_TO_WRITE);
	if (!err && role == SYSCALLS_OBSERVER)
		err = add_observer(ctx, false);
	return err;
}

/* It writes a process's memory through a file. */
static int add_injector(scmp_filter_ctx ctx)
{
	int err = add(ctx, SCMP_ACT_ALLOW, injector);

	if (!err)
		err = add_observer(ctx, true);
	return err ? err : add_opens(ctx, O_CREAT | O_TRUNC);
}

/* A library of a driver: which requests it makes by ioctl() is not known. Landlock limits which files it opens. */
static int add_meter(scmp_filter_ctx ctx)
{
	int err = add(ctx, SCMP_ACT_ALLOW, lookups);

	if (!err && !SANITIZED)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 0);
	return err ? err : add_opens(ctx, O_CREAT | O_TRUNC);
}

/* Opens files for reading, creates links and iterators, updates maps, starts perf events. */
static int add_attacher(scmp_filter_ctx ctx, bool perf_events)
{
	static const unsigned int commands[] = { BPF_LINK_CREATE,	 BPF_LINK_DETACH,	 BPF_ITER_CREATE,
						 BPF_OBJ_GET_INFO_BY_FD, BPF_MAP_UPDATE_ELEM,	 BPF_MAP_DELETE_ELEM,
						 BPF_MAP_LOOKUP_ELEM,	 BPF_RAW_TRACEPOINT_OPEN };
	/* libbpf loads programs of its own to find out what the kernel supports */
	static const unsigned int loads[] = { BPF_PROG_LOAD, BPF_BTF_LOAD, BPF_MAP_CREATE };
	static const unsigned int events[] = { PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_PERIOD,
					       PERF_EVENT_IOC_SET_BPF };
	int err = add(ctx, SCMP_ACT_ALLOW, attacher);

	if (!err)
		err = ADD_VALUES(ctx, SCMP_SYS(bpf), 0, commands);
	if (!err && perf_events)
		err = ADD_VALUES(ctx, SCMP_SYS(bpf), 0, loads);
	if (!err && perf_events)
		err = add(ctx, SCMP_ACT_ALLOW, perf);
	if (!err && !SANITIZED)
		err = ADD_VALUES(ctx, SCMP_SYS(ioctl), 1, events);
	if (!err && !SANITIZED)
		err = ADD_VALUES(ctx, SCMP_SYS(ioctl), 1, namespaces);
	return err ? err : add_opens(ctx, OPENS_TO_WRITE);
}

static int add_role(scmp_filter_ctx ctx, enum syscalls_role role)
{
	switch (role) {
	case SYSCALLS_WORKER:
		return add_worker(ctx);
	case SYSCALLS_ATTACHER:
	case SYSCALLS_PERF:
		return add_attacher(ctx, role == SYSCALLS_PERF);
	case SYSCALLS_INJECTOR:
		return add_injector(ctx);
	case SYSCALLS_METER:
		return add_meter(ctx);
	case SYSCALLS_READER:
	case SYSCALLS_SOURCES:
	case SYSCALLS_OBSERVER:
		return add_reader(ctx, role);
	}
	return -EINVAL;
}

static int add_all(scmp_filter_ctx ctx, enum syscalls_role role)
{
	int err = add(ctx, SCMP_ACT_ALLOW, common);

	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, X86_URETPROBE, 0);
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, X86_UPROBE, 0);
	if (!err)
		err = add_clone(ctx);
	if (!err)
		err = add_own_state(ctx);
	if (!err)
		err = add_role(ctx, role);
	if (!err)
		err = add(ctx, SCMP_ACT_ERRNO(EPERM), useless);
	return err;
}

/*
 * Added last: a call that an earlier list allows stays allowed. libseccomp drops a call's rules about arguments when
 * a rule without arguments follows, so a role that may open files for reading gets none; opening for writing is then
 * a call that is refused.
 */
static int add_paths(scmp_filter_ctx ctx, enum syscalls_role role)
{
	bool opens_none = role == SYSCALLS_WORKER || role == SYSCALLS_READER;
	int err = opens_none ? add(ctx, SCMP_ACT_ERRNO(EACCES), opens) : 0;

	return err ? err : add(ctx, SCMP_ACT_ERRNO(EACCES), paths);
}

/* Not by malloc and free, which the compiler may leave out together. */
static bool has_room(void)
{
	/* cppcheck-suppress invalidFunctionArg */
	void *room = mmap(NULL, FILTER_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return room != MAP_FAILED && !munmap(room, FILTER_ROOM);
}

int syscalls__confine(enum syscalls_role role)
{
	struct sigaction sa = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER };
	bool has_none = test_switch__is_set("no-seccomp");
	scmp_filter_ctx ctx = has_none || !has_room() ? NULL : seccomp_init(SCMP_ACT_TRAP);
	int err = ctx ? 0 : has_none ? -ENOSYS : -ENOMEM;
	sigset_t set;

	/* if this process or its parent had blocked the signal, it would end the process */
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	refused = -1;
	if (!err)
		err = add_all(ctx, role);
	if (!err)
		err = add_paths(ctx, role);
	/* apply it to existing threads, too */
	if (!err)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	/* a binary tree: fewer steps for each call */
	if (!err)
		seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err && sigaction(SIGSYS, &sa, NULL))
		err = -errno;
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}
